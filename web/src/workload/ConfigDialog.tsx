import { Dialog } from 'radix-ui';
import { type DragEvent, useState } from 'react';
import { Button } from '../ui/Button';

export type Config = Record<string, unknown>;

interface Props {
  open: boolean;
  config?: Config;
  onClose(): void;
  onUse(config: Config): void;
}

/** ConfigDialog takes a Hugging Face config.json, pasted, dropped or chosen. */
export function ConfigDialog({ open, config, onClose, onUse }: Props) {
  return (
    <Dialog.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/60" />
        <Dialog.Content className="fixed top-[10vh] left-1/2 z-50 flex max-h-[80vh] w-[min(40rem,calc(100vw-2rem))] -translate-x-1/2 flex-col rounded-lg border border-line-strong bg-surface p-6">
          <Dialog.Title className="text-lg font-semibold">A model by its config.json</Dialog.Title>
          <Dialog.Description className="mt-1 text-sm text-muted">
            The file beside a Hugging Face model, with model_type and architectures. It is read here and sent to this server only.
          </Dialog.Description>
          <ConfigForm config={config} onClose={onClose} onUse={onUse} />
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

function ConfigForm({ config, onClose, onUse }: Omit<Props, 'open'>) {
  const [text, setText] = useState(config ? JSON.stringify(config, null, 2) : '');
  const [wrong, setWrong] = useState('');

  function use() {
    const parsed = parseConfig(text);
    if (typeof parsed === 'string') return setWrong(parsed);
    onUse(parsed);
    onClose();
  }

  async function drop(event: DragEvent) {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    event.stopPropagation();
    setText(await file.text());
  }

  return (
    <>
      <textarea
        aria-label="config.json"
        aria-invalid={wrong ? true : undefined}
        value={text}
        spellCheck={false}
        onChange={(event) => setText(event.target.value)}
        onDrop={drop}
        placeholder={'{\n  "model_type": "gpt2",\n  "architectures": ["GPT2LMHeadModel"],\n  "n_layer": 24\n}'}
        className="mt-4 min-h-48 flex-1 resize-y rounded border border-line-strong bg-bg p-3 font-mono text-xs placeholder:text-faint"
      />
      {wrong && (
        <p role="alert" className="mt-2 text-sm text-bad-text">
          {wrong}
        </p>
      )}
      <div className="mt-4 flex flex-wrap items-center justify-between gap-3">
        <label className="cursor-pointer text-sm text-accent-text underline underline-offset-4 focus-within:outline-2">
          Choose a file
          <input
            type="file"
            accept=".json,application/json"
            className="sr-only"
            onChange={async (event) => setText((await event.target.files?.[0]?.text()) ?? '')}
          />
        </label>
        <div className="flex gap-2">
          <Button look="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button look="primary" onClick={use}>
            Use it
          </Button>
        </div>
      </div>
    </>
  );
}

/** parseConfig reads a config.json, or says what is wrong with it. */
export function parseConfig(text: string): Config | string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'A config.json is one JSON object.';
  if (!('model_type' in value)) return 'It has no model_type; is it the config.json of a model?';
  return value as Config;
}
