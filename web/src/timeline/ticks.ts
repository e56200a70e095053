/** Where round numbers lie on an axis. */

export interface Tick {
  at: number;
  label: string;
}

/** roundStep is the smallest round step with which a range has at most that many parts. */
export function roundStep(range: number, parts: number): number {
  const rough = range / Math.max(parts, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 2.5, 5, 10].find((f) => f * power >= rough * (1 - 1e-9)) ?? 10;
  return factor * power;
}

const units: [string, number][] = [
  ['TiB', 1024 ** 4],
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
  ['B', 1],
];

/** byteTicks counts in the unit of the largest value, so that the labels of an axis can be compared. */
export function byteTicks(from: number, to: number, parts: number): Tick[] {
  const [name, unit] = units.find(([, size]) => to >= size) ?? units[units.length - 1]!;
  const step = Math.max(roundStep((to - from) / unit, parts), unit === 1 ? 1 : 0);
  const ticks: Tick[] = [];
  for (let n = Math.ceil(from / unit / step); n * step * unit <= to; n++) {
    const value = Number((n * step).toFixed(6));
    ticks.push({
      at: n * step * unit,
      label: value === 0 ? '0' : `${value.toLocaleString('en-US', { maximumFractionDigits: 6 })} ${name}`,
    });
  }
  return ticks;
}

/** eventTicks names events; an event's place on the axis is the moment after it. */
export function eventTicks(x0: number, x1: number, parts: number): Tick[] {
  const step = Math.max(1, Math.round(roundStep(x1 - x0, parts)));
  const ticks: Tick[] = [];
  for (let event = Math.max(0, Math.ceil((x0 - 1) / step)) * step; event + 1 < x1; event += step) {
    ticks.push({ at: event + 1, label: event.toLocaleString('en-US') });
  }
  return ticks;
}

/**
 * timeTicks places round times. Time does not run evenly along events: the roundest times are placed first,
 * finer ones where there is space, and a time that a pause runs past is not placed after it. elapsed has the
 * time at each column; gap is in columns. It is TimeTicks of internal/timeline.
 */
export function timeTicks(elapsed: Float64Array, first: number, last: number, gap: number): { column: number; micros: number }[] {
  const ticks: { column: number; micros: number }[] = [];
  const start = elapsed[first]!;
  const end = elapsed[last]!;
  const free = (column: number) => ticks.every((t) => Math.abs(t.column - column) >= gap);
  for (const step of roundSteps(end)) {
    if ((end - start) / step > 1000) break;
    for (let time = Math.ceil(start / step) * step; time <= end; time += step) {
      const column = lowerBound(elapsed, time);
      const reached = elapsed[column]!;
      time = Math.floor(reached / step) * step;
      if (column >= first && column <= last && free(column) && reached - time <= step / 4) ticks.push({ column, micros: time });
    }
  }
  return ticks.toSorted((a, b) => a.column - b.column);
}

function roundSteps(most: number): number[] {
  const steps: number[] = [];
  for (let power = 1; power <= most; power *= 10) steps.unshift(5 * power, 2 * power, power);
  return steps;
}

function lowerBound(values: ArrayLike<number>, wanted: number): number {
  let low = 0;
  let high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
