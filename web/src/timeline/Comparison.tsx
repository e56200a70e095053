import { X } from 'lucide-react';
import { Problem } from '../api/problem';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { formatBytes, formatCount } from './format';
import { madeBy } from './frame';
import type { Address } from './index';
import type { Compare } from './queries';
import type { Stage } from './stage';
import type { ComparisonState } from './useComparison';

interface Props {
  comparison: ComparisonState;
  stage: Stage;
  address: Address;
}

/** Comparison says where two recordings part; the plot shows the other one as a line. */
export function Comparison({ comparison, stage, address }: Props) {
  const { id, name, compare, problem, aligned, setAligned } = comparison;
  const close = () => address.set({ with: '' });
  if (!id) return null;
  if (problem) return <ErrorBox problem={new Problem(-1, problem)} title="The snapshots cannot be compared" onDismiss={close} />;
  return (
    <section aria-label="Comparison" className="rounded-lg border border-warn/40 bg-surface px-4 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2">
        <p className="min-w-0 flex-1 basis-72">
          <span className="text-warn-text">{name || 'The other recording'}</span> {compare ? verdictOf(compare) : 'is being compared…'}
        </p>
        {compare && !compare.same && (
          <>
            <label className="flex items-center gap-2 text-muted">
              <input type="checkbox" className="accent-accent-text" checked={aligned} onChange={(event) => setAligned(event.target.checked)} />
              align there
            </label>
            <Button size="small" onClick={() => address.set({ tab: 'grew' })}>
              What grew
            </Button>
            <Button size="small" onClick={() => stage.goTo(compare.differences[0]!.predicted.event, 1 / 16)}>
              First difference
            </Button>
          </>
        )}
        <button type="button" onClick={close} aria-label="Close the comparison" className="rounded p-1 text-muted hover:text-text">
          <X size={16} aria-hidden />
        </button>
      </div>
      {compare && !compare.same && <Differences compare={compare} stage={stage} />}
    </section>
  );
}

function verdictOf(c: Compare): string {
  const peaks = `its peak is ${formatBytes(c.measured.peak_bytes)}, this one's ${formatBytes(c.predicted.peak_bytes)}`;
  if (c.same) return `makes the same requests (${formatCount(c.equal)}); ${peaks}.`;
  return `makes the same first ${formatCount(c.equal_before)} requests, then differs in ${formatCount(c.stretches)} places; ${peaks}.`;
}

function Differences({ compare, stage }: { compare: Compare; stage: Stage }) {
  return (
    <details className="mt-2">
      <summary className="text-muted">The differences, in order</summary>
      <ol className="mt-2 max-h-64 divide-y divide-line overflow-y-auto text-xs">
        {compare.differences.map((d) => (
          <li key={`${d.predicted.event} ${d.measured.event}`}>
            <button
              type="button"
              className="grid w-full grid-cols-[4rem_minmax(0,1fr)] sm:grid-cols-[5rem_15rem_15rem_minmax(0,1fr)] gap-3 rounded px-2 py-1 text-left hover:bg-raised"
              onClick={() => stage.goTo(d.predicted.event, 1 / 16)}
            >
              <span className="font-mono text-muted">{formatCount(d.predicted.event)}</span>
              <span>here {firstOf(d.predicted)}</span>
              <span className="text-warn-text">there {firstOf(d.measured)}</span>
              <span className="truncate font-mono text-muted">
                {madeBy(d)}
              </span>
            </button>
          </li>
        ))}
      </ol>
      {compare.differences_left_out !== undefined && <p className="mt-1 text-xs text-muted">and {formatCount(compare.differences_left_out)} more</p>}
    </details>
  );
}

/** firstOf names the first request that the other does not make; how many there are says how long the two differ. */
function firstOf({ count, requests }: Compare['differences'][number]['predicted']): string {
  const first = requests[0];
  return first ? `${first.action} ${formatBytes(first.bytes)}, ${formatCount(count)} in all` : 'nothing';
}
