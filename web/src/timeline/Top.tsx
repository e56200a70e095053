import { Problem } from '../api/problem';
import { Breakable } from './Breakable';
import { formatBytes, formatCount, formatMoment } from './format';
import { madeBy } from './frame';
import { type Recording, useTop } from './queries';

/** Top lists what is largest at a moment, by the line that made it. */
export function Top({ recording, event }: { recording: Recording; event: number | null }) {
  const top = useTop(recording, event, 'line');
  if (event === null || event < 0) return <p className="text-sm text-muted">Move the cursor to an event to see what was live.</p>;
  if (top.isError) return <p className="text-sm text-bad-text">{Problem.of(top.error).message}</p>;
  if (!top.data) return null;
  const { groups, rest, live_bytes, live_count } = top.data;
  return (
    <section aria-label="Largest at the cursor" className={top.isPlaceholderData ? 'opacity-60' : ''}>
      <p className="text-sm text-muted">
        After {formatMoment(top.data.event)}: <strong className="font-semibold text-text">{formatBytes(live_bytes)}</strong> in {formatCount(live_count)}{' '}
        allocations
      </p>
      {/* What scrolls must be reached by keys. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className="mt-2 overflow-x-auto" tabIndex={0} role="group" aria-label="Table of the largest, scrollable">
        <table className="w-full text-left text-xs sm:min-w-[34rem]">
          <thead className="text-muted">
            <tr>
              <th className="py-1 pr-4 text-right font-normal">Size</th>
              <th className="py-1 pr-4 text-right font-normal max-sm:hidden">Share</th>
              <th className="py-1 pr-4 text-right font-normal max-sm:hidden">Count</th>
              <th className="py-1 pr-4 font-normal">For</th>
              <th className="w-full py-1 font-normal">Allocated by</th>
            </tr>
          </thead>
          <tbody>
            {groups.map((g, i) => (
              // Two groups may look alike; their order is fixed.
              // oxlint-disable-next-line react/no-array-index-key
              <tr key={i} className="border-t border-line align-top">
                <td className="py-1.5 pr-4 text-right font-mono whitespace-nowrap">{formatBytes(g.total_bytes)}</td>
                <td className="py-1.5 pr-4 text-right font-mono whitespace-nowrap max-sm:hidden">{(g.share * 100).toFixed(1)} %</td>
                <td className="py-1.5 pr-4 text-right font-mono max-sm:hidden">{formatCount(g.count)}</td>
                <td className="py-1.5 pr-4 sm:whitespace-nowrap">{g.before_recording ? 'before recording' : (g.category ?? 'unknown')}</td>
                <td className="py-1.5 font-mono break-words text-muted">
                  <Breakable path={madeBy(g) || 'no Python frame'} />
                </td>
              </tr>
            ))}
            {rest && (
              <tr className="border-t border-line text-muted">
                <td className="py-1.5 pr-4 text-right font-mono whitespace-nowrap">{formatBytes(rest.total_bytes)}</td>
                <td className="py-1.5 pr-4 text-right font-mono whitespace-nowrap max-sm:hidden">{(rest.share * 100).toFixed(1)} %</td>
                <td className="py-1.5 pr-4 text-right font-mono max-sm:hidden">{formatCount(rest.count)}</td>
                <td colSpan={2}>the rest</td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
    </section>
  );
}
