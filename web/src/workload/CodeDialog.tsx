import { Dialog } from 'radix-ui';
import { type DragEvent, useState } from 'react';
import { useLocation } from 'wouter';
import { answer, api, type Workload } from '../api/client';
import { Problem } from '../api/problem';
import { useWorkers } from '../api/queries';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { TextInput } from '../ui/Inputs';
import { ableTo, code } from '../workers/state';

export type Files = Record<string, string>;

interface Props {
  open: boolean;
  workload: Workload;
  /** files to begin with */
  files?: Files;
  onClose(): void;
}

/** CodeDialog takes the user's own program, such as train.py, and has a worker emulate it. */
export function CodeDialog({ open, onClose, ...rest }: Props) {
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/60" />
        <Dialog.Content className="fixed top-[8vh] left-1/2 z-50 flex max-h-[84vh] w-[min(44rem,calc(100vw-2rem))] -translate-x-1/2 flex-col overflow-y-auto rounded-lg border border-line-strong bg-surface p-6">
          <Dialog.Title className="text-lg font-semibold">Your own code</Dialog.Title>
          <Dialog.Description className="mt-1 text-sm text-muted">
            A function without arguments that returns a model and a function batch(n). A worker runs it with its PyTorch on an emulated card, in a
            sandbox without network.
          </Dialog.Description>
          <CodeForm onClose={onClose} {...rest} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

const example = `import torch


def make():
    return torch.nn.Linear(64, 64), lambda n: torch.randn(n, 64)
`;

function CodeForm({ workload, files: given, onClose }: Omit<Props, 'open'>) {
  const [, navigate] = useLocation();
  const workers = useWorkers().data?.workers ?? [];
  const able = ableTo(workers, code).length > 0;
  const [files, setFiles] = useState<Files>(given ?? { 'train.py': '' });
  const [file, setFile] = useState(mainOf(given));
  const [name, setName] = useState('make');
  const [problem, setProblem] = useState<Problem>();
  const [busy, setBusy] = useState(false);

  async function take(list: FileList | null) {
    const read = await readPython(list);
    if (Object.keys(read).length === 0) return;
    const kept = Object.fromEntries(Object.entries(files).filter(([, text]) => text.trim() !== ''));
    const all = { ...kept, ...read };
    setFiles(all);
    if (!kept[file]) setFile(mainOf(all)); // what comes with a program is not the program
  }

  function drop(event: DragEvent) {
    event.preventDefault();
    event.stopPropagation();
    void take(event.dataTransfer.files);
  }

  async function begin() {
    setBusy(true);
    setProblem(undefined);
    const { model: _, config: __, ...settings } = workload;
    try {
      const begun = await answer(api.POST('/v1/analyses/code', { body: { code: { files, file, function: name }, workload: settings } }));
      onClose();
      navigate(`/history/${begun.id}`);
    } catch (error) {
      setProblem(Problem.of(error));
      setBusy(false);
    }
  }

  return (
    <div className="mt-4 flex flex-col gap-4" onDrop={drop} onDragOver={(event) => event.preventDefault()}>
      <label className="flex flex-col gap-1.5 text-xs text-muted">
        {file}
        <textarea
          value={files[file] ?? ''}
          rows={12}
          spellCheck={false}
          placeholder={example}
          onChange={(event) => setFiles({ ...files, [file]: event.target.value })}
          className="resize-y rounded border border-line-strong bg-bg p-3 font-mono text-xs text-text placeholder:text-faint"
        />
      </label>
      {Object.keys(files).length > 1 && <p className="text-xs text-muted">With {Object.keys(files).filter((each) => each !== file).join(', ')}.</p>}
      <div className="grid gap-4 sm:grid-cols-2">
        <TextInput label="Function" value={name} onChange={setName} />
        <label className="inline-flex min-h-6 cursor-pointer items-center self-end pb-2 text-sm text-accent-text underline underline-offset-4 focus-within:outline-2">
          Choose files
          <input type="file" multiple accept=".py,text/x-python" className="sr-only" onChange={(event) => void take(event.target.files)} />
        </label>
      </div>
      {!able && (
        <p className="text-sm text-warn-text">
          No worker here runs your code. On a Linux machine with a CUDA build of PyTorch, which needs no GPU:{' '}
          <code className="font-mono text-xs">memorymark worker --allow-code --join {location.origin}</code>
        </p>
      )}
      {problem && <ErrorBox problem={problem} title="It could not be started" onDismiss={() => setProblem(undefined)} />}
      <div className="flex justify-end gap-2">
        <Button look="quiet" onClick={onClose}>
          Cancel
        </Button>
        <Button look="primary" disabled={!able || busy || !(files[file] ?? '').trim()} onClick={() => void begin()}>
          Emulate it
        </Button>
      </div>
    </div>
  );
}

/** readPython reads the Python files of a drop or a choice. */
export async function readPython(list: FileList | null): Promise<Files> {
  const python = [...(list ?? [])].filter((file) => file.name.endsWith('.py'));
  return Object.fromEntries(await Promise.all(python.map(async (file) => [file.name, await file.text()] as const)));
}

// mainOf is the file with the function: train.py, if there is one.
function mainOf(files: Files | undefined): string {
  const names = Object.keys(files ?? {});
  return names.includes('train.py') ? 'train.py' : (names[0] ?? 'train.py');
}
