/**
 * Drawing of the stack without a graphics card: boxes become runs of ids in a buffer, one id a pixel,
 * and a palette turns ids into colours. The buffer is also how the page knows what the pointer is on.
 *
 * Boxes do not overlap, so a picture costs its boxes plus its pixels and not more. Rows are rounded the
 * same way for the top of a box and the bottom of the next, so that there are no gaps; a box thinner than
 * a pixel may fall between two rows and leave nothing.
 */

import { columnAt, type Timeline } from './data';
import type { View } from './view';

/** Picture is a rastered view. Id 0 is the background, then come the shapes, then the bands. */
export interface Picture {
  width: number;
  height: number;
  ids: Uint32Array;
}

/** Palette is what ids of a picture look like, as ImageData holds it, and what their edges do. */
export interface Palette {
  colors: Uint32Array;
  edges: Uint32Array;
}

export const background = 0;

export function idOfShape(shape: number): number {
  return shape + 1;
}

export function idOfBand(t: Timeline, band: number): number {
  return t.shapes.count + 1 + band;
}

/** Sampling is which column each pixel shows, and which pixel is the first to show a column or a later one. */
export interface Sampling {
  column: Int32Array; // by pixel, -1 outside of the timeline
  before: Int32Array; // by column, and one more for the end
}

/**
 * sample lets every pixel show the column with the most active memory under it, as Go does with events:
 * a peak is seen however far one zooms out.
 */
export function sample(t: Timeline, view: View, width: number): Sampling {
  const { columns, active } = t.lines;
  const column = new Int32Array(width).fill(-1);
  const first = columnAt(t, view.x0);
  const step = (columnAt(t, view.x1) - first) / width;
  for (let p = 0; p < width; p++) {
    const start = Math.floor(first + p * step);
    const end = Math.floor(first + (p + 1) * step);
    if (end < 0 || start >= columns || (start < 0 && end <= 0)) continue;
    let best = Math.max(start, 0);
    for (let c = best + 1; c < end && c < columns; c++) if (active[c]! > active[best]!) best = c;
    column[p] = best;
  }
  return { column, before: firstPixels(column, columns) };
}

function firstPixels(column: Int32Array, columns: number): Int32Array {
  const before = new Int32Array(columns + 1);
  let p = column.length;
  while (p > 0 && column[p - 1]! < 0) p--; // right of the timeline
  for (let c = columns; c >= 0; c--) {
    while (p > 0 && column[p - 1]! >= c) p--;
    before[c] = p;
  }
  return before;
}

/** Rows turns bytes into rows of pixels, counted from the top. */
class Rows {
  readonly perByte: number;
  readonly base: number;
  constructor(
    view: View,
    readonly height: number,
  ) {
    this.perByte = height / (view.y1 - view.y0);
    this.base = height + view.y0 * this.perByte;
  }
  of(bytes: number): number {
    const row = Math.round(this.base - bytes * this.perByte);
    return row < 0 ? 0 : row > this.height ? this.height : row;
  }
}

/** raster draws a view into ids, which must be as long as the picture has pixels. */
export function raster(t: Timeline, view: View, width: number, height: number, ids: Uint32Array): Picture {
  ids.fill(background);
  const picture = { width, height, ids };
  const { column, before } = sample(t, view, width);
  const rows = new Rows(view, height);
  drawBoxes(t, view, picture, before, rows);
  drawBands(t, picture, column, rows);
  return picture;
}

function drawBoxes(t: Timeline, view: View, picture: Picture, before: Int32Array, rows: Rows) {
  const { count, shape, start, end, offset } = t.boxes;
  const { size } = t.shapes;
  for (let i = 0; i < count; i++) {
    const from = before[start[i]!]!;
    const to = before[end[i]!]!;
    if (from >= to) continue;
    const low = offset[i]!;
    const high = low + size[shape[i]!]!;
    if (low >= view.y1 || high <= view.y0) continue;
    fill(picture, from, to, rows.of(high), rows.of(low), idOfShape(shape[i]!));
  }
}

function drawBands(t: Timeline, picture: Picture, column: Int32Array, rows: Rows) {
  t.bands.forEach((band, index) => {
    const id = idOfBand(t, index);
    for (let p = 0; p < picture.width; p++) {
      const c = column[p]!;
      if (c >= 0) fill(picture, p, p + 1, rows.of(band.top[c]!), rows.of(band.bottom[c]!), id);
    }
  });
}

function fill({ width, ids }: Picture, from: number, to: number, top: number, bottom: number, id: number) {
  if (to - from === 1) {
    for (let at = top * width + from, last = bottom * width; at < last; at += width) ids[at] = id;
    return;
  }
  for (let row = top * width; row < bottom * width; row += width) ids.fill(id, row + from, row + to);
}

/** mark draws shapes once more, at least a pixel high: what was searched for must not fall between two rows. */
export function mark(t: Timeline, view: View, picture: Picture, chosen: (shape: number) => boolean) {
  const { before } = sample(t, view, picture.width);
  const rows = new Rows(view, picture.height);
  const { count, shape, start, end, offset } = t.boxes;
  for (let i = 0; i < count; i++) {
    if (!chosen(shape[i]!)) continue;
    const low = offset[i]!;
    const high = low + t.shapes.size[shape[i]!]!;
    if (low >= view.y1 || high <= view.y0) continue;
    const top = Math.min(rows.of(high), picture.height - 1);
    const from = before[start[i]!]!;
    fill(picture, from, Math.max(before[end[i]!]!, Math.min(from + 1, picture.width)), top, Math.max(rows.of(low), top + 1), idOfShape(shape[i]!));
  }
}

/**
 * paint gives pixels their colours. The upper edge of whatever is a few pixels high is drawn in the second
 * palette, so that neighbours of one colour can be told apart.
 */
export function paint({ width, ids }: Picture, { colors, edges }: Palette, out: Uint32Array) {
  const n = ids.length;
  const deep = n - 2 * width;
  for (let at = 0; at < n; at++) {
    const id = ids[at]!;
    const edge = id !== background && at >= width && at < deep && ids[at - width] !== id && ids[at + width] === id && ids[at + 2 * width] === id;
    out[at] = edge ? edges[id]! : colors[id]!;
  }
}

/** idAt returns what is drawn at a pixel, or the background outside of the picture. */
export function idAt({ width, height, ids }: Picture, x: number, y: number): number {
  const column = Math.floor(x);
  const row = Math.floor(y);
  if (column < 0 || row < 0 || column >= width || row >= height) return background;
  return ids[row * width + column]!;
}
