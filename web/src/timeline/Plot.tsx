import { useEffect, useRef } from 'react';
import { useTheme } from '../app/theme';
import { colorOf, css } from './colors';
import type { Summary } from './data';
import { formatBytes, formatCount, formatMoment } from './format';
import type { Done } from './gestures';
import type { Stage } from './stage';
import { usePlotGestures } from './usePlotGestures';
import { useStage } from './useStage';

interface Props {
  stage: Stage;
  name: string;
  done: Required<Done>;
}

/** Plot is the stack of active memory and the overview below it. */
export function Plot({ stage, name, done }: Props) {
  const plot = useRef<HTMLCanvasElement>(null);
  const overview = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const whole = useStage(stage, 'whole');
  const cursor = useStage(stage, 'cursor');
  useEffect(() => stage.attach(plot.current!, overview.current!), [stage]);
  useEffect(() => stage.setTheme(theme), [stage, theme]);
  usePlotGestures(stage, { plot, overview, done });
  return (
    <div className="relative">
      <canvas
        ref={plot}
        tabIndex={0}
        // It has keys of its own, which no other role has.
        // oxlint-disable-next-line jsx-a11y/no-interactive-element-to-noninteractive-role
        role="application"
        aria-roledescription="timeline"
        aria-label={`Active memory of ${name} over its events`}
        aria-describedby="plot-keys"
        data-testid="plot"
        className="block h-[52vh] min-h-72 w-full touch-none rounded bg-bg lg:h-[calc(100vh-var(--above))] lg:min-h-[13.5rem]"
      />
      <canvas ref={overview} aria-hidden data-testid="overview" className="mt-2 block h-12 w-full cursor-col-resize touch-none rounded bg-bg" />
      <p id="plot-keys" className="sr-only">
        Arrow keys move, plus and minus zoom, p goes to the peak, square brackets move the cursor by an event, j and k select an allocation at it, question mark
        lists all keys.
      </p>
      <p role="status" className="sr-only">
        {whole && cursor !== null && `Cursor at ${formatMoment(cursor)} of ${formatCount(whole.events)}`}
      </p>
      {whole && <Hover stage={stage} whole={whole} />}
    </div>
  );
}

/** Hover says in a few words what the pointer is on, on the side of it that has space. */
function Hover({ stage, whole }: { stage: Stage; whole: Summary }) {
  const under = useStage(stage, 'hovered');
  const pointer = useStage(stage, 'pointer');
  const theme = useTheme();
  const group = under && whole.groups[under.group];
  if (!under || !group || !pointer) return null;
  const side = pointer.x < pointer.width / 2 ? { left: pointer.x + 14 } : { right: pointer.width - pointer.x + 14 };
  return (
    <div
      aria-hidden
      style={{ top: pointer.y + 14, ...side }}
      className="pointer-events-none absolute max-w-[min(26rem,60%)] rounded border border-line-strong bg-surface/95 px-3 py-2 text-xs shadow-lg"
    >
      <p className="flex items-center gap-2">
        <span className="size-2.5 shrink-0 rounded-sm" style={{ background: css(colorOf(theme, group.color)) }} />
        <span className="font-semibold">{under.kind === 'shape' ? formatBytes(under.size) : `${formatCount(under.count)} smaller ones`}</span>
        <span className="truncate text-muted">{group.label}</span>
      </p>
      {under.kind === 'shape' && under.frames[0] && <p className="mt-1 truncate font-mono text-muted">{under.frames[0]}</p>}
    </div>
  );
}
