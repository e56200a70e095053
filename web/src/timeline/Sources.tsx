import { FileUp } from 'lucide-react';
import { type FormEvent, useRef } from 'react';
import { useLocation } from 'wouter';
import type { Workload } from '../api/client';
import { site } from '../api/engine';
import { Problem } from '../api/problem';
import { useCards, useModels } from '../api/queries';
import { Button } from '../ui/Button';
import { PageTitle } from '../ui/PageTitle';
import { uploads } from '../uploads/uploads';
import { timelineOf } from '../workload/address';
import { formatBytes } from './format';
import { type Entry, type Snapshot, useSnapshots } from './queries';

interface Props {
  onOpen(snapshot: Pick<Snapshot, 'id'>): void;
}

/** Sources is where a timeline can come from: a file, what is kept, or a prediction. */
export function Sources({ onOpen }: Props) {
  return (
    <>
      <PageTitle title="Timeline">Every allocation of a run over time: where the memory goes, what causes the peak, and why it ran out.</PageTitle>
      <FileDrop />
      <div className="grid gap-4 lg:grid-cols-2">
        {site === undefined && <Predicted />}
        <Kept onOpen={onOpen} />
      </div>
    </>
  );
}

function FileDrop() {
  const limit = useSnapshots().data?.max_upload_bytes;
  const input = useRef<HTMLInputElement>(null);
  return (
    <div className="rounded-xl border border-dashed border-line-strong bg-surface px-6 py-12 text-center">
      <FileUp size={28} aria-hidden className="mx-auto text-accent-text" />
      <p className="mt-3 font-medium">Drop a snapshot here</p>
      <p className="mx-auto mt-1 max-w-prose text-sm text-muted">
        A file of <code className="font-mono">torch.cuda.memory._dump_snapshot()</code>, plain or compressed with gzip, zstd or xz
        {limit !== undefined && <>, up to {formatBytes(limit)}</>}.{' '}
        {site === undefined ? 'It goes to your MemoryMark and nowhere else.' : 'It is read in this page and sent nowhere.'}
      </p>
      <input
        ref={input}
        type="file"
        className="sr-only"
        aria-label="Snapshot file"
        onChange={(event) => {
          const file = event.target.files?.[0];
          if (file) void uploads.send(file);
        }}
      />
      <Button look="primary" className="mt-5" onClick={() => input.current?.click()}>
        Choose a file
      </Button>
    </div>
  );
}

const field = 'rounded border border-line-strong bg-bg px-3 py-2 text-sm';

function Predicted() {
  const models = useModels();
  const cards = useCards();
  const [, navigate] = useLocation();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    navigate(timelineOf({ model: String(form.get('model')), gpu: String(form.get('gpu')) as Workload['gpu'] }, Number(form.get('batch'))));
  };
  return (
    <section aria-labelledby="predict-title" className="rounded-lg border border-line bg-surface p-5">
      <h2 id="predict-title" className="font-semibold">
        Predict one
      </h2>
      <p className="mt-1 text-sm text-muted">Build the model and run three training steps, simulated. No GPU is needed.</p>
      <form onSubmit={submit} className="mt-4 grid grid-cols-1 gap-3 sm:grid-cols-[1fr_1fr_6rem]">
        <label className="flex min-w-0 flex-col gap-1.5 text-sm">
          <span className="text-muted">Model</span>
          <select name="model" key={models.status} className={field} defaultValue="gpt2">
            {models.data?.models.map((m) => (
              <option key={m.id} value={m.id}>
                {m.name}
              </option>
            ))}
          </select>
        </label>
        <label className="flex min-w-0 flex-col gap-1.5 text-sm">
          <span className="text-muted">Card</span>
          <select name="gpu" key={cards.status} className={field} defaultValue="a10">
            {cards.data?.gpus.map((c) => (
              <option key={c.id} value={c.id}>
                {c.name}
              </option>
            ))}
          </select>
        </label>
        <label className="flex flex-col gap-1.5 text-sm">
          <span className="text-muted">Batch</span>
          <input name="batch" type="number" min={1} max={65536} defaultValue={16} required className={field} />
        </label>
        <Button type="submit" className="sm:col-span-3 sm:justify-self-start" disabled={!models.data || !cards.data}>
          Show its timeline
        </Button>
      </form>
    </section>
  );
}

export const originNames: Record<string, string> = { uploaded: 'recorded', measured: 'measured', predicted: 'predicted' };

export function nameOf(entry: Pick<Entry, 'id' | 'name'>): string {
  return entry.name || `snapshot ${entry.id.slice(0, 12)}`;
}

function Kept({ onOpen }: Pick<Props, 'onOpen'>) {
  const kept = useSnapshots();
  return (
    <section aria-labelledby="kept-title" className="rounded-lg border border-line bg-surface p-5">
      <h2 id="kept-title" className="font-semibold">
        {site === undefined ? 'Open a saved one' : 'Open one again'}
      </h2>
      {kept.isError && <p className="mt-2 text-sm text-bad-text">{Problem.of(kept.error).message}</p>}
      {kept.data?.snapshots.length === 0 && (
        <p className="mt-2 text-sm text-muted">
          {site === undefined
            ? 'None yet. Measured runs, predictions and files that you drop here are listed here.'
            : 'None yet. Files that you drop here are listed here until you close this page.'}
        </p>
      )}
      <ul className="mt-3 max-h-72 divide-y divide-line overflow-y-auto">
        {kept.data?.snapshots.map((entry) => (
          <li key={entry.id}>
            <button
              type="button"
              onClick={() => onOpen(entry)}
              className="flex w-full items-baseline gap-3 rounded px-2 py-2 text-left text-sm hover:bg-raised"
            >
              <span className="min-w-0 flex-1 truncate">{nameOf(entry)}</span>
              <span className="text-xs text-muted">{originNames[entry.origin] ?? entry.origin}</span>
              <span className="w-20 text-right text-xs text-muted">{formatBytes(entry.bytes)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
