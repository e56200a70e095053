import { useState } from 'react';
import { Problem } from '../api/problem';
import { Button } from '../ui/Button';
import { formatBytes, formatCount, formatMicros } from './format';
import { type Recording, type Stretch, useStretch } from './queries';
import type { Range } from './range';

interface Props {
  recording: Recording;
  range: Range | null;
  onGo(event: number): void;
  onSeen(): void; // takes what is seen
  onClear(): void;
}

const kinds = { by_line: 'line', by_module: 'module', by_category: 'category' } as const;

/** StretchTab sums up a range of events: what is made and freed in it, what stays, and what is live when it is highest. */
export function StretchTab({ recording, range, onGo, onSeen, onClear }: Props) {
  const [by, setBy] = useState<keyof typeof kinds>('by_line');
  const stretch = useStretch(recording, range);
  if (!range) {
    return (
      <div className="flex flex-wrap items-center gap-3 text-sm text-muted">
        <p>Drag over the plot with Shift held, or press r, to sum up a range of events.</p>
        <Button size="small" onClick={onSeen}>
          Use the visible range
        </Button>
      </div>
    );
  }
  if (stretch.isError) return <p className="text-sm text-bad-text">{Problem.of(stretch.error).message}</p>;
  if (!stretch.data) return null;
  return (
    <section aria-label="Range" className={stretch.isPlaceholderData ? 'opacity-60' : ''}>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-sm text-muted">
        <p className="min-w-0 flex-1 basis-72">{sentence(stretch.data)}</p>
        <Button size="small" onClick={() => onGo(stretch.data.peak.event)}>
          Its peak
        </Button>
        <Button size="small" look="quiet" onClick={onClear}>
          Clear
        </Button>
        <label className="flex items-center gap-2">
          By
          <select
            className="rounded border border-line-strong bg-bg px-2 py-1 text-text"
            value={by}
            onChange={(event) => setBy(event.target.value as keyof typeof kinds)}
          >
            {Object.entries(kinds).map(([key, name]) => (
              <option key={key} value={key}>
                {name}
              </option>
            ))}
          </select>
        </label>
      </div>
      <Sums name={kinds[by]} groups={stretch.data[by]} sum={stretch.data.sum} />
    </section>
  );
}

function sentence({ from, to, duration_us: micros, sum, peak }: Stretch): string {
  const events = `Events ${formatCount(from)} to ${formatCount(to - 1)}${micros === undefined ? '' : `, ${formatMicros(micros)}`}`;
  const made = `${formatBytes(sum.made_bytes)} made in ${formatCount(sum.made_count)} allocations, ${formatBytes(sum.freed_bytes)} freed`;
  return `${events}: ${made}, ${formatBytes(sum.kept_bytes)} of the new stays. It is highest at event ${formatCount(peak.event)}, ${formatBytes(peak.live_bytes)}.`;
}

type Group = Stretch['by_line'][number];

const columns: [string, (g: Omit<Group, 'label'>) => string][] = [
  ['At the peak', (g) => formatBytes(g.at_peak_bytes)],
  ['Allocated', (g) => formatBytes(g.made_bytes)],
  ['Count', (g) => formatCount(g.made_count)],
  ['Freed', (g) => formatBytes(g.freed_bytes)],
  ['Stays', (g) => formatBytes(g.kept_bytes)],
];

function Sums({ name, groups, sum }: { name: string; groups: Group[]; sum: Stretch['sum'] }) {
  return (
    // What scrolls must be reached by keys.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="mt-2 overflow-x-auto" tabIndex={0} role="group" aria-label={`Sums by ${name}, scrollable`}>
      <table className="w-full min-w-[40rem] text-left text-xs">
        <thead className="text-muted">
          <tr>
            {columns.map(([title]) => (
              <th key={title} className="py-1 pr-4 text-right font-normal whitespace-nowrap">
                {title}
              </th>
            ))}
            <th className="w-full py-1 font-normal">{name[0]!.toUpperCase() + name.slice(1)}</th>
          </tr>
        </thead>
        <tbody>
          {[...groups, { ...sum, label: 'all' }].map((group) => (
            <tr key={group.label} className="border-t border-line align-top last:font-semibold">
              {columns.map(([title, text]) => (
                <td key={title} className="py-1.5 pr-4 text-right font-mono whitespace-nowrap">
                  {text(group)}
                </td>
              ))}
              <td className="py-1.5 font-mono break-words text-muted">{group.label}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
