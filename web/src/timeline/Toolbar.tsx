import { BoxSelect, ChevronLeft, ChevronRight, Keyboard, Maximize2, Search, ZoomIn, ZoomOut } from 'lucide-react';
import type { ReactNode, RefObject } from 'react';
import { Button } from '../ui/Button';
import { formatCount } from './format';
import type { Act } from './keys';
import type { Stage } from './stage';
import type { Finds } from './useFinds';
import { useStage } from './useStage';

interface Props {
  stage: Stage;
  act(act: Act): void;
  search: RefObject<HTMLInputElement | null>;
  finds: Finds;
  detail: number;
  onDetail(detail: number): void;
  byStack: boolean;
  onByStack(byStack: boolean): void;
  drawing: boolean; // dragging draws a range
  onDrawing(drawing: boolean): void;
}

/** Details that the slider offers, up to what the server gives. */
const details = [250, 1000, 4000, 8000, 30_000, 100_000];

export function Toolbar({ stage, act, search, finds, detail, onDetail, byStack, onByStack, drawing, onDrawing }: Props) {
  const drawn = useStage(stage, 'drawn');
  const all = useStage(stage, 'present');
  return (
    <div role="toolbar" aria-label="Timeline" className="flex flex-wrap items-center gap-x-4 gap-y-2 text-sm">
      <SearchBox search={search} finds={finds} act={act} />
      <label className="flex items-center gap-2 text-muted">
        Colour
        <select
          className="rounded border border-line-strong bg-bg px-2 py-1 text-text"
          value={byStack ? 'line' : 'category'}
          onChange={(event) => onByStack(event.target.value === 'line')}
        >
          <option value="category">by category</option>
          <option value="line">by line or module</option>
        </select>
      </label>
      <label
        className="flex items-center gap-2 text-muted"
        title={`${formatCount(drawn)} of ${formatCount(all)} allocations are drawn individually, the largest first; the rest are bands`}
      >
        Detail
        <input
          type="range"
          className="w-24 accent-accent-text"
          min={0}
          max={details.length - 1}
          value={details.indexOf(detail)}
          aria-valuetext={`${formatCount(detail)} individual allocations`}
          onChange={(event) => onDetail(details[Number(event.target.value)]!)}
        />
        <span className="min-w-24 text-xs">
          {formatCount(drawn)} of {formatCount(all)}
        </span>
      </label>
      <div className="ml-auto flex items-center gap-1">
        <Button
          size="small"
          look={drawing ? 'plain' : 'quiet'}
          aria-pressed={drawing}
          aria-label="Draw a range"
          title="Draw a range of events to sum up (Shift and drag)"
          onClick={() => onDrawing(!drawing)}
          className="px-2"
        >
          <BoxSelect size={16} aria-hidden />
        </Button>
        <Tool label="Zoom in" hint="+" onClick={() => act('in')}>
          <ZoomIn size={16} aria-hidden />
        </Tool>
        <Tool label="Zoom out" hint="−" onClick={() => act('out')}>
          <ZoomOut size={16} aria-hidden />
        </Tool>
        <Tool label="Show all" hint="0" onClick={() => act('all')}>
          <Maximize2 size={16} aria-hidden />
        </Tool>
        <Button size="small" onClick={() => act('fit')} title="Fit the scale to the visible range (f)">
          Fit
        </Button>
        <Button size="small" onClick={() => act('peak')} title="Go to the peak (p)">
          Peak
        </Button>
        <Tool label="Keys" hint="?" onClick={() => act('help')}>
          <Keyboard size={16} aria-hidden />
        </Tool>
      </div>
    </div>
  );
}

function Tool({ label, hint, onClick, children }: { label: string; hint: string; onClick(): void; children: ReactNode }) {
  return (
    <Button size="small" look="quiet" aria-label={label} title={`${label} (${hint})`} onClick={onClick} className="px-2">
      {children}
    </Button>
  );
}

function SearchBox({ search, finds, act }: Pick<Props, 'search' | 'finds' | 'act'>) {
  return (
    <div className="flex min-w-0 flex-wrap items-center gap-2 max-sm:w-full">
      <div className="relative max-sm:flex-1">
        <Search size={14} aria-hidden className="absolute top-1/2 left-2.5 -translate-y-1/2 text-faint" />
        <input
          ref={search}
          type="search"
          value={finds.text}
          onChange={(event) => finds.setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Enter') finds.go(event.shiftKey ? -1 : 1);
            if (event.key === 'Escape') finds.setText('');
          }}
          aria-label="Search by size, address or frame"
          placeholder="20MiB, >1GiB, 0x7f…, forward"
          className="w-full rounded border sm:w-64 border-line-strong bg-bg py-1.5 pr-2 pl-8 font-mono text-xs"
        />
      </div>
      {finds.query && (
        <>
          <Tool label="Previous match" hint="N" onClick={() => act('previous match')}>
            <ChevronLeft size={16} aria-hidden />
          </Tool>
          <Tool label="Next match" hint="n" onClick={() => act('next match')}>
            <ChevronRight size={16} aria-hidden />
          </Tool>
        </>
      )}
      <output className="text-xs text-accent-text">{finds.problem || matches(finds)}</output>
    </div>
  );
}

function matches({ query, rows, more, at, searching }: Finds): string {
  if (searching) return 'searching…';
  if (!query) return '';
  const count = `${more ? 'more than ' : ''}${formatCount(rows.length)}`;
  if (rows.length === 0) return 'nothing found';
  return at < 0 ? `${count} found` : `${formatCount(at + 1)} of ${count}`;
}
