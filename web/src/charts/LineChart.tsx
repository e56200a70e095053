// Lines over numbers, as SVG. It draws what it is given; every number comes from
// the server. Pointer and arrow keys walk from point to point.
import { scaleLinear } from 'd3-scale';
import { type PointerEvent, useId, useState } from 'react';
import { useWidth } from './useWidth';
import { walk } from './walk';

export interface Line {
  name: string;
  color: string;
  points: [x: number, y: number][];
  thin?: boolean;
  dashed?: boolean;
}

export interface Mark {
  x: number;
  y: number;
  name: string;
  color: string;
}

interface Props {
  /** what the chart says, for those who cannot see it */
  summary: string;
  xLabel: string;
  yLabel: string;
  formatY(value: number): string;
  lines: Line[];
  /** horizontal lines with a name */
  rules?: { y: number; name: string; color: string }[];
  marks?: Mark[];
  /** what is said of the point at x */
  tip(x: number): { title: string; rows: [name: string, value: string][] };
}

const margin = { top: 16, right: 16, bottom: 40, left: 48 };
const height = 280;

export function LineChart({ summary, xLabel, yLabel, formatY, lines, rules = [], marks = [], tip }: Props) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [at, setAt] = useState<number>();
  const hint = useId();
  const xs = [...new Set(lines.flatMap((line) => line.points.map(([x]) => x)))].toSorted((a, b) => a - b);
  const ys = [...lines.flatMap((line) => line.points.map(([, y]) => y)), ...rules.map((rule) => rule.y)];
  const x = scaleLinear([0, xs.at(-1) ?? 1], [margin.left, Math.max(margin.left + 1, width - margin.right)]);
  const y = scaleLinear([0, Math.max(...ys, 1) * 1.08], [height - margin.bottom, margin.top]);
  const chosen = at === undefined ? undefined : xs[at];

  function point(event: PointerEvent<SVGSVGElement>) {
    const left = event.clientX - event.currentTarget.getBoundingClientRect().left;
    setAt(nearest(xs, x.invert(left)));
  }

  return (
    <div ref={box} className="relative">
      <svg
        width={width}
        height={height}
        role="img"
        aria-label={summary}
        aria-describedby={hint}
        tabIndex={0}
        onPointerMove={point}
        onPointerLeave={() => setAt(undefined)}
        onBlur={() => setAt(undefined)}
        onKeyDown={(event) => walk(event, xs.length, at, setAt)}
        className="block touch-pan-y rounded text-[11px]"
      >
        <Axes x={x} y={y} width={width} xLabel={xLabel} yLabel={yLabel} formatY={formatY} />
        {rules.map((rule) => (
          <g key={rule.name} style={{ color: rule.color }}>
            <line x1={margin.left} x2={width - margin.right} y1={y(rule.y)} y2={y(rule.y)} stroke="currentColor" strokeDasharray="6 4" />
            <text x={margin.left + 4} y={y(rule.y) - 6} fill="currentColor">
              {rule.name}
            </text>
          </g>
        ))}
        {lines.map((line) => (
          <path
            key={line.name}
            d={`M${line.points.map(([px, py]) => `${x(px).toFixed(1)},${y(py).toFixed(1)}`).join('L')}`}
            fill="none"
            stroke={line.color}
            strokeWidth={line.thin ? 1.25 : 2}
            strokeDasharray={line.dashed ? '2 4' : undefined}
            strokeLinejoin="round"
            strokeLinecap="round"
          />
        ))}
        {chosen !== undefined && <line x1={x(chosen)} x2={x(chosen)} y1={margin.top} y2={height - margin.bottom} className="stroke-line-strong" />}
        {marks.map((mark) => (
          <circle key={mark.name} cx={x(mark.x)} cy={y(mark.y)} r="5" fill={mark.color} className="stroke-surface" strokeWidth="2" />
        ))}
      </svg>
      <p id={hint} className="sr-only">
        Arrow keys walk from batch to batch.
      </p>
      <Legend lines={lines} marks={marks} />
      {chosen !== undefined && <Tip {...tip(chosen)} left={x(chosen)} width={width} />}
    </div>
  );
}

type Scale = ReturnType<typeof scaleLinear<number, number>>;

interface AxesProps extends Pick<Props, 'xLabel' | 'yLabel' | 'formatY'> {
  x: Scale;
  y: Scale;
  width: number;
}

function Axes({ x, y, width, xLabel, yLabel, formatY }: AxesProps) {
  return (
    <g aria-hidden className="fill-faint">
      {y.ticks(5).map((tick) => (
        <g key={tick}>
          <line x1={margin.left} x2={width - margin.right} y1={y(tick)} y2={y(tick)} className="stroke-line" />
          <text x={margin.left - 8} y={y(tick) + 4} textAnchor="end">
            {formatY(tick)}
          </text>
        </g>
      ))}
      {x.ticks(Math.max(2, Math.floor(width / 80))).map((tick) => (
        <text key={tick} x={x(tick)} y={height - margin.bottom + 16} textAnchor="middle">
          {tick}
        </text>
      ))}
      <text x={width - margin.right} y={height - 6} textAnchor="end">
        {xLabel}
      </text>
      <text x={margin.left - 8} y={height - 6} textAnchor="end" className="sr-only">
        {yLabel}
      </text>
    </g>
  );
}

function Legend({ lines, marks }: { lines: Line[]; marks: Mark[] }) {
  return (
    <ul className="mt-2 flex flex-wrap gap-x-5 gap-y-1 text-xs text-muted">
      {lines.map((line) => (
        <li key={line.name} className="flex items-center gap-2">
          <svg width="18" height="6" aria-hidden>
            <path d="M1 3h16" stroke={line.color} strokeWidth={line.thin ? 1.25 : 2} strokeDasharray={line.dashed ? '2 4' : undefined} strokeLinecap="round" />
          </svg>
          {line.name}
        </li>
      ))}
      {marks.map((mark) => (
        <li key={mark.name} className="flex items-center gap-2">
          <span aria-hidden className="size-2 rounded-full" style={{ background: mark.color }} />
          {mark.name}
        </li>
      ))}
    </ul>
  );
}

function Tip({ title, rows, left, width }: { title: string; rows: [string, string][]; left: number; width: number }) {
  const side = left > width / 2 ? { right: width - left + 12 } : { left: left + 12 };
  return (
    <div role="status" style={side} className="pointer-events-none absolute top-4 rounded border border-line-strong bg-raised px-3 py-2 text-xs shadow-lg">
      <p className="font-semibold">{title}</p>
      <dl className="mt-1 grid grid-cols-[auto_auto] gap-x-3">
        {rows.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="text-right">{value}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

/** nearest is the index of the number of a sorted list that is closest to another. */
export function nearest(sorted: number[], value: number): number {
  let best = 0;
  for (const [index, each] of sorted.entries()) {
    if (Math.abs(each - value) < Math.abs((sorted[best] ?? Infinity) - value)) best = index;
  }
  return best;
}
