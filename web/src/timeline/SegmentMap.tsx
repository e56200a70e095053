import { useEffect, useMemo, useRef, useState } from 'react';
import { type Theme, useTheme } from '../app/theme';
import { Problem } from '../api/problem';
import { colorOf, css, shade } from './colors';
import { formatAddress, formatBytes, formatCount, formatMoment } from './format';
import { type Recording, useSegments } from './queries';
import type { Under } from './scene';
import { type Block, barAt, blocksOf, layoutOf, type SegmentMapLayout } from './segments';
import type { Stage } from './stage';

interface Props {
  recording: Recording;
  event: number;
  stage: Stage;
  selected: Under | null;
  onSelect(under: Under | null): void;
}

const mostLines = 24;
const lineHeight = 18;

/** SegmentMap shows what the allocator held at a moment: segments, the blocks in them, and the gaps. */
export function SegmentMap({ recording, event, selected, onSelect }: Props) {
  const answer = useSegments(recording, event, event >= 0);
  const segments = useMemo(() => answer.data?.segments ?? [], [answer.data]);
  const blocks = useMemo(() => blocksOf(segments), [segments]);
  const layout = useMemo(() => layoutOf(segments, blocks, mostLines), [segments, blocks]);
  const [looked, setLooked] = useState<{ blocks: Block[]; at: number }>({ blocks, at: -1 });
  const at = looked.blocks === blocks ? looked.at : -1; // other blocks, other numbers
  const chosen = blocks[at];
  const choose = (index: number) => {
    setLooked({ blocks, at: index });
    const block = blocks[index];
    if (block && block.allocation >= 0) {
      onSelect({ kind: 'shape', id: block.allocation, size: block.requested, group: -1, born: -1, freed: -1, frames: [] });
    }
  };
  if (event < 0) return <p className="text-sm text-muted">Move the cursor to an event to see the allocator's segments.</p>;
  if (answer.isError) return <p className="text-sm text-muted">{Problem.of(answer.error).message}</p>;
  if (!answer.data) return null;
  const { totals } = answer.data;
  const wanted = selected?.kind === 'shape' ? selected.id : -1;
  return (
    <section aria-label="Segments" className={answer.isPlaceholderData ? 'opacity-60' : ''}>
      <p className="flex flex-wrap items-center gap-x-4 gap-y-1 text-sm text-muted">
        <span>
          After {formatMoment(answer.data.event)}: <strong className="font-semibold text-text">{formatBytes(totals.total_bytes)}</strong> in{' '}
          {formatCount(totals.count)} segments, {formatBytes(totals.free_bytes)} of it in holes, the largest {formatBytes(totals.largest_free_block_bytes)}
        </span>
        <Key color={holeColor} name="hole" />
        <Key color={waitingColor} name="waits for a stream" />
        <span>a line is {formatBytes(Math.round(layout.bytesPerLine))}</span>
      </p>
      <Map layout={layout} blocks={blocks} at={at} wanted={wanted} onChoose={choose} />
      <p role="status" className="mt-2 min-h-5 font-mono text-xs text-muted">
        {chosen && describe(chosen, segments[chosen.segment]!)}
      </p>
    </section>
  );
}

const holeColor = 'var(--cause-fragmentation)';
const waitingColor = 'var(--warn)';

function Key({ color, name }: { color: string; name: string }) {
  return (
    <span className="flex items-center gap-1.5">
      <span aria-hidden className="size-2.5 rounded-sm" style={{ background: color }} />
      {name}
    </span>
  );
}

function describe(b: Block, s: { address: number; bytes: number; small?: boolean; expandable?: boolean; private?: boolean }): string {
  const kind = [s.private && 'private', s.expandable && 'expandable', s.small && 'small'].filter(Boolean).join(' ');
  const where = `at ${formatAddress(s.address + b.offset)}, in a ${kind ? `${kind} ` : ''}segment of ${formatBytes(s.bytes)}`;
  if (b.state === 'free') return `a gap of ${formatBytes(b.bytes)} ${where}`;
  const what = b.state === 'waiting' ? 'freed, waiting for another stream' : `${formatBytes(b.requested)} requested`;
  return `${formatBytes(b.bytes)}, ${what}, ${where}`;
}

interface MapProps {
  layout: SegmentMapLayout;
  blocks: Block[];
  at: number;
  wanted: number; // the allocation that is selected elsewhere
  onChoose(block: number): void;
}

function Map({ layout, blocks, at, wanted, onChoose }: MapProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const element = canvas.current!;
    const draw = () => drawMap(element, theme, layout, blocks, at, wanted);
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    return () => observer.disconnect();
  }, [layout, blocks, at, wanted, theme]);
  return (
    <canvas
      ref={canvas}
      tabIndex={0}
      // It has keys of its own, which no other role has.
      // oxlint-disable-next-line jsx-a11y/no-interactive-element-to-noninteractive-role
      role="application"
      aria-roledescription="map of segments"
      aria-label="Segments of the allocator. Left and right go from block to block."
      data-own-keys
      data-testid="segments"
      className="mt-3 block w-full cursor-crosshair rounded bg-bg"
      style={{ height: layout.lines * lineHeight }}
      onClick={(event) => {
        const { offsetX, offsetY } = event.nativeEvent;
        const bar = barAt(layout, Math.floor(offsetY / lineHeight), offsetX / event.currentTarget.clientWidth);
        if (bar) onChoose(bar.block);
      }}
      onKeyDown={(event) => {
        const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!by || blocks.length === 0) return;
        event.preventDefault();
        onChoose(Math.min(Math.max(at + by, 0), blocks.length - 1));
      }}
    />
  );
}

function drawMap(canvas: HTMLCanvasElement, theme: Theme, layout: SegmentMapLayout, blocks: Block[], at: number, wanted: number) {
  const ratio = Math.min(devicePixelRatio, 2);
  const width = canvas.clientWidth;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  const ctx = canvas.getContext('2d')!;
  ctx.scale(ratio, ratio);
  const style = getComputedStyle(canvas);
  const read = (variable: string) => style.getPropertyValue(variable.slice('var('.length, -1)).trim();
  const [hole, waiting, text] = [read(holeColor), read(waitingColor), read('var(--text)')];
  for (const bar of layout.bars) {
    const block = blocks[bar.block]!;
    const w = bar.width * width;
    const chosen = bar.block === at || (wanted >= 0 && block.allocation === wanted);
    const used = css(shade(colorOf(theme, block.color), (bar.block % 3) - 1));
    ctx.fillStyle = chosen ? text : block.state === 'free' ? hole : block.state === 'waiting' ? waiting : used;
    ctx.globalAlpha = block.state === 'free' && !chosen ? 0.45 : 1;
    ctx.fillRect(bar.x * width, bar.line * lineHeight + 2, Math.max(0.5, bar.last && w > 3 ? w - 1 : w), lineHeight - 4);
  }
  ctx.globalAlpha = 1;
}
