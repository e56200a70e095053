import { useState } from 'react';
import { Problem } from '../api/problem';
import { formatBytes, formatCount } from './format';
import { madeBy } from './frame';
import { type Diff, type Recording, useDiff } from './queries';

interface Props {
  recording: Recording;
  other: string;
  name: string; // of the other
}

const moments = { peak: 'the peak', end: 'the end' } as const;

/** Grew shows what is larger and what is smaller in another recording, by the line that made it, as bars about a middle. */
export function Grew({ recording, other, name }: Props) {
  const [at, setAt] = useState<keyof typeof moments>('peak');
  const diff = useDiff(recording, other, at);
  if (!other) return <p className="text-sm text-muted">Compare with another recording to see what grew.</p>;
  if (diff.isError) return <p className="text-sm text-bad-text">{Problem.of(diff.error).message}</p>;
  if (!diff.data) return null;
  const { before, after, changes, changes_left_out: left } = diff.data;
  const most = Math.max(1, ...changes.map((c) => Math.abs(c.change_bytes)));
  return (
    <section aria-label="What grew" className={diff.isPlaceholderData ? 'opacity-60' : ''}>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-sm text-muted">
        <p className="min-w-0 flex-1 basis-72">
          From here to {name || 'the other recording'}: {formatBytes(before.live_bytes)} to {formatBytes(after.live_bytes)},{' '}
          <strong className="font-semibold text-text">{signed(after.live_bytes - before.live_bytes)}</strong>.
        </p>
        <label className="flex items-center gap-2">
          At
          <select
            className="rounded border border-line-strong bg-bg px-2 py-1 text-text"
            value={at}
            onChange={(event) => setAt(event.target.value as keyof typeof moments)}
          >
            {Object.entries(moments).map(([key, text]) => (
              <option key={key} value={key}>
                {text}
              </option>
            ))}
          </select>
        </label>
      </div>
      {changes.length === 0 && <p className="mt-3 text-sm text-muted">Nothing grew or shrank.</p>}
      <ol className="mt-3 divide-y divide-line text-xs">
        {changes.map((change, i) => (
          // Two lines may look alike; their order is fixed.
          // oxlint-disable-next-line react/no-array-index-key
          <Change key={i} change={change} most={most} />
        ))}
      </ol>
      {left !== undefined && <p className="mt-2 text-xs text-muted">and {formatCount(left)} smaller changes</p>}
    </section>
  );
}

function signed(bytes: number): string {
  if (bytes === 0) return 'no change';
  return `${formatBytes(Math.abs(bytes))} ${bytes > 0 ? 'more' : 'less'}`;
}

function Change({ change, most }: { change: Diff['changes'][number]; most: number }) {
  const share = (50 * Math.abs(change.change_bytes)) / most;
  const grew = change.change_bytes > 0;
  const from = change.before_recording ? 'from before the recording' : 'no Python frame';
  return (
    <li className="grid grid-cols-[minmax(0,1fr)_auto] items-center gap-x-4 gap-y-1 py-2 sm:grid-cols-[14rem_7rem_13rem_minmax(0,1fr)]">
      <span aria-hidden className="relative h-3 rounded-sm bg-raised">
        <span className="absolute inset-y-0 left-1/2 w-px bg-line-strong" />
        <span
          className={`absolute inset-y-0 rounded-sm ${grew ? 'left-1/2 bg-warn' : 'right-1/2 bg-accent'}`}
          style={{ width: `max(2px, ${share}%)` }}
        />
      </span>
      <span className={`text-right font-mono ${grew ? 'text-warn-text' : 'text-accent-text'}`}>
        {grew ? '+' : '−'}
        {formatBytes(Math.abs(change.change_bytes))}
      </span>
      <span className="font-mono text-muted">
        {formatBytes(change.before_bytes)} → {formatBytes(change.after_bytes)}
      </span>
      <span className="col-span-2 min-w-0 sm:col-span-1">
        <span className="mr-2">{change.category ?? 'unknown'}</span>
        <span className="font-mono [overflow-wrap:anywhere] text-muted">{madeBy(change) || from}</span>
      </span>
    </li>
  );
}
