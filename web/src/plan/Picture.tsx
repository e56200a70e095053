// Dollars against days, each on a scale of factors: what fits is filled, what
// does not is hollow. Pointer, touch and arrow keys tell about a point.
import { scaleLinear } from 'd3-scale';
import { type PointerEvent, useId, useState } from 'react';
import type { Schemas } from '../api/client';
import { useWidth } from '../charts/useWidth';
import { walk } from '../charts/walk';
import { count, dollars, duration } from '../format';
import { labelsOf } from '../workload/changes';
import type { BestWay } from './PlanResult';

interface Point {
  dollars: number;
  days: number;
  title: string;
  text: string;
  fits: boolean;
  /** its memory was only estimated */
  unsure?: boolean;
  adapters: boolean;
  /** what it is best in */
  name?: string;
  /** no other is both cheaper and faster */
  frontier?: boolean;
}

const margin = { top: 24, right: 20, bottom: 44, left: 56 };
const height = 360;
const near = 28;
const faint = 0.3;

// noteOf says what to know of an option in addition to its price.
function noteOf({ simulated, verdict }: Schemas['Option']): string {
  if (!simulated) return ' (not simulated, may not fit)';
  return verdict === 'tight' ? ' (tight)' : '';
}

/** pointsOf are what has a price, by dollars. */
export function pointsOf({ options, misfits }: Pick<Schemas['Plan'], 'options' | 'misfits'>, best: BestWay[]): Point[] {
  const drawn = [...(options ?? []), ...best.flatMap(({ option }) => (options?.some((each) => isSame(each, option)) ? [] : option))];
  const ways = drawn.flatMap((option): Point[] =>
    option.dollars
      ? [
          {
            dollars: option.dollars,
            days: option.days,
            title: `${count(option.gpus)} × ${option.gpu_name}`,
            text: (labelsOf(option.changes) || option.setup) + noteOf(option),
            fits: true,
            unsure: !option.simulated,
            adapters: option.trains === 'adapters',
            frontier: option.frontier,
            name: best.find((way) => isSame(way.option, option))?.names.join(' and '),
          },
        ]
      : [],
  );
  const hollow = (misfits ?? []).flatMap((misfit): Point[] =>
    misfit.dollars
      ? [
          {
            dollars: misfit.dollars,
            days: misfit.days,
            title: `${count(misfit.gpus)} × ${misfit.gpu}`,
            text: `Does not fit: ${misfit.reason}.`,
            fits: false,
            adapters: misfit.trains === 'adapters',
          },
        ]
      : [],
  );
  return [...hollow, ...ways].toSorted((a, b) => a.dollars - b.dollars);
}

function isSame(a: Schemas['Option'], b: Schemas['Option']): boolean {
  return a.command === b.command && a.gpus === b.gpus;
}

export function Picture({ plan, best }: { plan: Schemas['Plan']; best: BestWay[] }) {
  const [box, width] = useWidth<HTMLDivElement>();
  const [at, setAt] = useState<number>();
  const hint = useId();
  const points = pointsOf(plan, best);
  if (points.length === 0) return <p className="text-sm text-muted">None of these has a price.</p>;
  const x = scaleOfFactors(extent(points.map((p) => p.dollars)), [margin.left, Math.max(margin.left + 1, width - margin.right)]);
  const y = scaleOfFactors(extent(points.map((p) => p.days)), [height - margin.bottom, margin.top]);
  const chosen = at === undefined ? undefined : points[at];

  function point(event: PointerEvent<SVGSVGElement>) {
    const frame = event.currentTarget.getBoundingClientRect();
    const away = points.map((p) => Math.hypot(x(p.dollars) - (event.clientX - frame.left), y(p.days) - (event.clientY - frame.top)));
    const closest = away.indexOf(Math.min(...away));
    setAt(away[closest]! < near ? closest : undefined);
  }

  return (
    <div ref={box} className="relative">
      <svg
        width={width}
        height={height}
        role="img"
        aria-label={summary(points)}
        aria-describedby={hint}
        tabIndex={0}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => setAt(undefined)}
        onBlur={() => setAt(undefined)}
        onKeyDown={(event) => walk(event, points.length, at, setAt)}
        className="block touch-pan-y rounded text-[11px]"
      >
        <Axes x={x} y={y} width={width} />
        <polyline
          points={points.flatMap((p) => (p.frontier ? `${x(p.dollars)},${y(p.days)}` : [])).join(' ')}
          className="fill-none stroke-text"
          strokeWidth="1.5"
          strokeDasharray="4 4"
          opacity="0.6"
        />
        {points.map((p) => (
          <Dot key={`${p.title} ${p.text}`} point={p} cx={x(p.dollars)} cy={y(p.days)} chosen={p === chosen} />
        ))}
        {points.map((p) => p.name && <Name key={p.name} point={p} x={x(p.dollars)} y={y(p.days)} width={width} />)}
      </svg>
      <p id={hint} className="sr-only">
        Arrow keys walk from point to point, the cheapest first.
      </p>
      <Legend />
      {chosen && <Tip point={chosen} left={x(chosen.dollars)} top={y(chosen.days)} width={width} />}
    </div>
  );
}

const colorOf = ({ adapters }: Pick<Point, 'adapters'>) => (adapters ? 'var(--cause-optimizer)' : 'var(--info)');

function Dot({ point, cx, cy, chosen }: { point: Point; cx: number; cy: number; chosen: boolean }) {
  const color = colorOf(point);
  return (
    <circle
      cx={cx}
      cy={cy}
      r={chosen ? 7 : point.name ? 6 : 4}
      fill={point.fits ? color : 'var(--surface)'}
      stroke={point.fits ? 'var(--surface)' : color}
      strokeWidth={point.fits ? 1 : 1.5}
      opacity={point.unsure && !chosen ? faint : 1}
    />
  );
}

// A name stands on the side of its point that has space.
function Name({ point, x, y, width }: { point: Point; x: number; y: number; width: number }) {
  const right = x < width * 0.6;
  return (
    <text x={x + (right ? 10 : -10)} y={y - 8} textAnchor={right ? 'start' : 'end'} className="fill-text stroke-surface font-medium" strokeWidth="3" paintOrder="stroke">
      {point.name}
    </text>
  );
}

interface Scale {
  (value: number): number;
  ends: [number, number];
}

/** scaleOfFactors has as much space from 1 to 10 as from 10 to 100. */
export function scaleOfFactors(ends: [number, number], places: [number, number]): Scale {
  const place = scaleLinear(ends.map(Math.log10), places);
  return Object.assign((value: number) => place(Math.log10(value)), { ends });
}

function Axes({ x, y, width }: { x: Scale; y: Scale; width: number }) {
  return (
    <g aria-hidden className="fill-faint">
      {ticksOf(y, 5).map((tick) => (
        <g key={tick}>
          <line x1={margin.left} x2={width - margin.right} y1={y(tick)} y2={y(tick)} className="stroke-line" />
          <text x={margin.left - 8} y={y(tick) + 4} textAnchor="end">
            {Number(tick.toPrecision(2))}
          </text>
        </g>
      ))}
      {ticksOf(x, width < 480 ? 3 : 6).map((tick) => (
        <text key={tick} x={x(tick)} y={height - margin.bottom + 18} textAnchor="middle">
          ${count(tick) === '0' ? tick : count(tick)}
        </text>
      ))}
      <text x={width - margin.right} y={height - 8} textAnchor="end">
        dollars
      </text>
      <text x={margin.left - 8} y={margin.top - 10} textAnchor="end">
        days
      </text>
    </g>
  );
}

/** ticksOf are the round numbers of a scale of factors: 1, 2 and 5 of each ten, or the tens alone where those are many. */
export function ticksOf({ ends: [from, to] }: Scale, wanted: number): number[] {
  const tens: number[] = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.log10(to); power++) tens.push(Number(`1e${power}`));
  const within = (tick: number) => tick >= from && tick <= to;
  const round = tens.flatMap((ten) => [ten, 2 * ten, 5 * ten]).filter(within);
  return round.length <= wanted * 1.5 ? round : tens.filter(within);
}

// extent leaves some space at both ends.
function extent(values: number[]): [number, number] {
  return [Math.min(...values) / 1.3, Math.max(...values) * 1.3];
}

function Legend() {
  const kinds: [string, Pick<Point, 'fits' | 'adapters' | 'unsure'>][] = [
    ['all weights', { fits: true, adapters: false }],
    ['adapters', { fits: true, adapters: true }],
    ['not simulated, may not fit', { fits: true, adapters: true, unsure: true }],
    ['does not fit', { fits: false, adapters: false }],
  ];
  return (
    <ul className="mt-2 flex flex-wrap gap-x-5 gap-y-1 text-xs text-muted">
      {kinds.map(([name, { fits, adapters, unsure }]) => (
        <li key={name} className="flex items-center gap-2">
          <svg width="12" height="12" aria-hidden>
            <circle cx="6" cy="6" r="4" fill={fits ? colorOf({ adapters }) : 'none'} stroke={fits ? 'none' : 'var(--muted)'} strokeWidth="1.5" opacity={unsure ? faint : 1} />
          </svg>
          {name}
        </li>
      ))}
      <li>dashed: none that was simulated is both cheaper and faster</li>
    </ul>
  );
}

function Tip({ point, left, top, width }: { point: Point; left: number; top: number; width: number }) {
  const side = left > width / 2 ? { right: width - left + 14 } : { left: left + 14 };
  return (
    <div
      role="status"
      style={{ ...side, top: Math.max(0, Math.min(top - 20, height - 140)) }}
      className="pointer-events-none absolute max-w-[min(18rem,45%)] rounded border border-line-strong bg-raised px-3 py-2 text-xs shadow-lg"
    >
      <p className="font-semibold">{point.title}</p>
      <p className="mt-0.5">
        {dollars(point.dollars)}, {duration(point.days * 24)}
      </p>
      <p className={`mt-0.5 ${point.fits ? 'text-muted' : 'text-bad-text'}`}>{point.text}</p>
    </div>
  );
}

function summary(points: Point[]): string {
  const fitting = points.filter((p) => p.fits);
  const cheapest = fitting[0];
  const said = cheapest ? ` The cheapest is ${cheapest.title}: ${dollars(cheapest.dollars)}, ${duration(cheapest.days * 24)}.` : '';
  return `${count(fitting.length)} ways that fit and ${count(points.length - fitting.length)} that do not, by dollars and days.${said}`;
}
