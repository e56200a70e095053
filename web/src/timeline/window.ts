/**
 * Which part of a timeline to ask the server for. The page holds all of it coarsely, and a finer window
 * around what is looked at. Windows lie on a grid, so that moving a little asks for nothing and going back
 * asks for the same again.
 */

import type { View, World } from './view';

/** Window is a request: events from (included) to (excluded), in at most that many columns. */
export interface Window {
  from: number;
  to: number;
  columns: number;
}

const sharpness = 2; // columns a pixel that the coarsest view of a window gets
const mostColumns = 20_000;

export function wholeWindow(events: number, pixels: number): Window {
  return { from: 0, to: events, columns: Math.min(mostColumns, sharpness * pixels) };
}

/**
 * windowFor returns the window for a view, or null if all of the timeline is as good. Its length is a power
 * of two, two to four times what is seen, and its start a multiple of a quarter of it.
 */
export function windowFor(world: World, view: View, pixels: number): Window | null {
  const seen = view.x1 - view.x0;
  const events = world.x - 1;
  const length = 2 * 2 ** Math.ceil(Math.log2(seen));
  if (length >= world.x || (events + 1 <= sharpness * pixels && events < mostColumns)) return null;
  const grid = length / 4;
  const start = Math.floor((view.x0 - seen / 4) / grid) * grid;
  const from = Math.max(0, Math.floor(start));
  const to = Math.min(events, Math.ceil(start + length));
  return { from, to, columns: Math.min(mostColumns, 4 * pixels) };
}

export function sameWindow(a: Window | null, b: Window | null): boolean {
  return a === b || (!!a && !!b && a.from === b.from && a.to === b.to && a.columns === b.columns);
}

/** covers reports whether a window holds all that a view shows. */
export function covers(w: { from: number; to: number }, view: View, world: World): boolean {
  return w.from <= Math.max(0, view.x0) && w.to + 1 >= Math.min(world.x, view.x1);
}
