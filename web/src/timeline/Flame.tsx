import { useState } from 'react';
import { Problem } from '../api/problem';
import { useTheme } from '../app/theme';
import { Button } from '../ui/Button';
import { type Theme, colorOf, css } from './colors';
import { formatBytes, formatCount, formatMoment } from './format';
import { type FlameRow, type Recording, useFlame } from './queries';

interface Props {
  recording: Recording;
  event: number | null; // of the cursor
}

/** Flame shows what is live at the cursor or at the peak by who called whom: a row for each caller, as wide as its memory. */
export function Flame({ recording, event }: Props) {
  const [atPeak, setAtPeak] = useState(false);
  const [zoomed, setZoomed] = useState<number[]>([]); // the way to the row that is as wide as all
  const at = atPeak || event === null || event < 0 ? 'peak' : String(event);
  const flame = useFlame(recording, at);
  if (flame.isError) return <p className="text-sm text-bad-text">{Problem.of(flame.error).message}</p>;
  if (!flame.data) return null;
  const { live_bytes: bytes, live_count: count, roots } = flame.data;
  const all: FlameRow = { name: `all that is live after ${formatMoment(flame.data.event)}`, kind: 'rest', total_bytes: bytes, count, children: roots };
  return (
    <section aria-label="Flame graph" className={flame.isPlaceholderData ? 'opacity-60' : ''}>
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-sm text-muted">
        <p className="min-w-0 flex-1 basis-72">
          <strong className="font-semibold text-text">{formatBytes(bytes)}</strong> in {formatCount(count)} allocations after{' '}
          {formatMoment(flame.data.event)}. Click a row to see it alone; <strong className="font-bold text-text">your lines are bold</strong>.
        </p>
        <label className="flex items-center gap-2">
          At
          <select
            className="rounded border border-line-strong bg-bg px-2 py-1 text-text"
            value={atPeak ? 'peak' : 'cursor'}
            onChange={(change) => {
              setAtPeak(change.target.value === 'peak');
              setZoomed([]);
            }}
          >
            <option value="cursor">the cursor</option>
            <option value="peak">the peak</option>
          </select>
        </label>
        <Button size="small" disabled={zoomed.length === 0} onClick={() => setZoomed([])}>
          Show all rows
        </Button>
      </div>
      <Graph all={all} zoomed={followed(all, zoomed) ? zoomed : []} onZoom={setZoomed} />
    </section>
  );
}

/** followed is the row at the end of a way, undefined if another moment has none there. */
function followed(all: FlameRow, way: number[]): FlameRow | undefined {
  return way.reduce<FlameRow | undefined>((row, i) => row?.children?.[i], all);
}

interface Box {
  row: FlameRow;
  way: number[];
  depth: number;
  left: number; // shares of the width
  width: number;
}

const thinnest = 0.002; // of the width: less cannot be read or hit
const rowHeight = 26;

/** boxesOf lays rows out: the way to the zoomed one across all of the width, and below it its children side by side. */
export function boxesOf(all: FlameRow, zoomed: number[]): Box[] {
  const boxes: Box[] = [];
  const place = (row: FlameRow, way: number[], left: number, width: number) => {
    if (width < thinnest) return;
    boxes.push({ row, way, depth: way.length, left, width });
    const next = zoomed[way.length];
    if (next !== undefined) return place(row.children![next]!, [...way, next], 0, 1);
    let at = left;
    row.children?.forEach((child, i) => {
      const share = row.total_bytes ? (width * child.total_bytes) / row.total_bytes : 0;
      place(child, [...way, i], at, share);
      at += share;
    });
  };
  place(all, [], 0, 1);
  return boxes;
}

function Graph({ all, zoomed, onZoom }: { all: FlameRow; zoomed: number[]; onZoom(way: number[]): void }) {
  const theme = useTheme();
  const boxes = boxesOf(all, zoomed);
  const depth = boxes.reduce((most, box) => Math.max(most, box.depth), 0);
  return (
    <div className="relative mt-3 overflow-hidden rounded border border-line bg-bg" style={{ height: (depth + 1) * rowHeight }}>
      {boxes.map(({ row, way, depth: level, left, width }) => (
        <button
          type="button"
          key={way.join(' ')}
          onClick={() => onZoom(way)}
          title={describe(row, all)}
          aria-label={describe(row, all)}
          style={{ top: level * rowHeight, height: rowHeight - 1, left: `${left * 100}%`, width: `calc(${width * 100}% - 1px)`, ...stripeOf(row, theme) }}
          className={`absolute truncate px-1.5 text-left font-mono text-xs hover:brightness-125 ${looks[row.kind]}`}
        >
          {width > 0.03 && row.name}
        </button>
      ))}
    </div>
  );
}

function describe(row: FlameRow, all: FlameRow): string {
  const share = all.total_bytes ? (100 * row.total_bytes) / all.total_bytes : 0;
  return `${row.name}: ${formatBytes(row.total_bytes)}, ${share.toFixed(1)} % in ${formatCount(row.count)} allocations`;
}

const categories = ['unknown', 'parameter', 'input', 'gradient', 'optimizer state', 'activation', 'temporary', 'workspace'];

/** Callers are coloured by whose code they are. */
const looks: Record<FlameRow['kind'], string> = {
  user: 'bg-warn-soft font-bold',
  library: 'bg-accent-soft',
  torch: 'bg-raised text-muted',
  category: 'bg-raised',
  rest: 'bg-raised text-muted',
};

/** stripeOf marks what the memory is for with the colour that it has in the plot. */
function stripeOf(row: FlameRow, theme: Theme) {
  const category = categories.indexOf(row.name.replace(/,.*$/, ''));
  return row.kind === 'category' && category >= 0 ? { borderLeft: `5px solid ${css(colorOf(theme, category))}` } : {};
}
