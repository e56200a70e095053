/**
 * A timeline as the server sends it (internal/timeline/json.go), unpacked into typed arrays. Rows of
 * numbers travel as differences; here they are summed once, and from then on only read.
 *
 * The x axis counts moments: the one before the first event is 0, the one after event e is e + 1.
 */

import type { Schemas } from '../api/client';

export type Wire = Schemas['Timeline'];
export type Group = Schemas['TimelineGroup'];
export type Span = Schemas['TimelineSpan'];
export type Failure = Schemas['TimelineFailure'];
export type Peak = Schemas['TimelinePeak'];

/** Shapes are the allocations that are drawn one by one; index = shape. */
export interface Shapes {
  count: number;
  id: Float64Array;
  size: Float64Array;
  group: Uint16Array;
  stack: Uint32Array;
  born: Float64Array; // event, -1 for before the recording
  freed: Float64Array; // event, -1 for never
}

/** Boxes are what shapes consist of: from a column to another at a height. A shape's are contiguous. */
export interface Boxes {
  count: number;
  shape: Uint32Array;
  start: Uint32Array; // columns, end excluded
  end: Uint32Array;
  offset: Float64Array; // bytes
}

export interface Band {
  group: number;
  count: number;
  largest: number;
  bottom: Float64Array; // by column
  top: Float64Array;
}

/** Lines are the totals and the clock, by column. Lines are small; they are what other threads get. */
export interface Lines {
  columns: number;
  moments: Float64Array;
  elapsed: Float64Array | null; // microseconds, one more than columns
  active: Float64Array;
  allocated: Float64Array | null;
  reserved: Float64Array | null;
}

export interface Summary {
  from: number;
  to: number;
  events: number;
  device: number;
  lost: number;
  peak: Peak;
  groups: Group[];
  spans: Span[];
  failures: Failure[];
  shown: number; // allocations drawn one by one
  lines: Lines;
}

export interface Timeline extends Summary {
  shapes: Shapes;
  boxes: Boxes;
  bands: Band[];
  stacks: number[][];
  frames: string[];
}

const shapeHead = 7; // numbers of a shape before its steps

export function decode(wire: Wire): Timeline {
  const lines: Lines = {
    columns: wire.moments.length,
    moments: sums(wire.moments),
    elapsed: wire.elapsed ? sums(wire.elapsed) : null,
    active: sums(wire.active),
    allocated: wire.allocated ? sums(wire.allocated) : null,
    reserved: wire.reserved ? sums(wire.reserved) : null,
  };
  return {
    from: wire.from,
    to: wire.to,
    events: wire.events,
    device: wire.device,
    lost: wire.lost,
    peak: wire.peak,
    groups: wire.groups,
    spans: wire.spans,
    failures: wire.failures,
    shown: wire.shapes.length,
    lines,
    shapes: decodeShapes(wire.shapes),
    boxes: decodeBoxes(wire.shapes),
    bands: decodeBands(wire.bands),
    stacks: wire.stacks,
    frames: wire.frames,
  };
}

/** summary leaves out what only the drawing needs. */
export function summary(t: Timeline): Summary {
  const { from, to, events, device, lost, peak, groups, spans, failures, shown, lines } = t;
  return { from, to, events, device, lost, peak, groups, spans, failures, shown, lines };
}

function sums(differences: number[]): Float64Array {
  const out = new Float64Array(differences.length);
  let last = 0;
  for (let i = 0; i < out.length; i++) out[i] = last += differences[i]!;
  return out;
}

function decodeShapes(rows: number[][]): Shapes {
  const n = rows.length;
  const s: Shapes = {
    count: n,
    id: new Float64Array(n),
    size: new Float64Array(n),
    group: new Uint16Array(n),
    stack: new Uint32Array(n),
    born: new Float64Array(n),
    freed: new Float64Array(n),
  };
  rows.forEach(([id = 0, size = 0, group = 0, stack = 0, born = 0, freed = 0], i) => {
    s.id[i] = id;
    s.size[i] = size;
    s.group[i] = group;
    s.stack[i] = stack;
    s.born[i] = born;
    s.freed[i] = freed;
  });
  return s;
}

function decodeBoxes(rows: number[][]): Boxes {
  const count = rows.reduce((sum, row) => sum + (row.length - shapeHead) / 2, 0);
  const b: Boxes = {
    count,
    shape: new Uint32Array(count),
    start: new Uint32Array(count),
    end: new Uint32Array(count),
    offset: new Float64Array(count),
  };
  let at = 0;
  rows.forEach((row, shape) => {
    let column = 0;
    let offset = 0;
    for (let i = shapeHead; i < row.length; i += 2, at++) {
      column += row[i]!;
      offset += row[i + 1]!;
      b.shape[at] = shape;
      b.start[at] = column;
      b.offset[at] = offset;
      if (i > shapeHead) b.end[at - 1] = column;
    }
    if (row.length > shapeHead) b.end[at - 1] = row[6]!;
  });
  return b;
}

function decodeBands(bands: Wire['bands']): Band[] {
  return bands.map(({ group, count, largest, bottoms, heights }) => {
    const bottom = sums(bottoms);
    const height = sums(heights);
    return { group, count, largest, bottom, top: bottom.map((v, c) => v + height[c]!) };
  });
}

/** columnAt is Timeline.X in Go: where on the columns of a window a moment's place on the x axis is. */
export function columnAt(t: Summary, x: number): number {
  return ((x - t.from) * t.lines.columns) / (t.to - t.from + 1);
}

/** placeOf is the inverse of columnAt. */
export function placeOf(t: Summary, column: number): number {
  return (column * (t.to - t.from + 1)) / t.lines.columns + t.from;
}

export function highest(values: Float64Array | null, from = 0, to = values?.length ?? 0): number {
  let most = 0;
  if (values) for (let i = from; i < to; i++) if (values[i]! > most) most = values[i]!;
  return most;
}
