/** The window in the overview: what a press on it takes hold of, and where dragging brings it. */

import { within, type View, type World } from './view';

export type Grip = 'start' | 'end' | 'window' | 'outside';

/** gripAt says what is at a pixel; the handles are wide enough for a finger. */
export function gripAt(pixel: number, start: number, end: number, reach: number): Grip {
  const toStart = Math.abs(pixel - start);
  const toEnd = Math.abs(pixel - end);
  if (Math.min(toStart, toEnd) <= reach) return toStart <= toEnd && pixel <= (start + end) / 2 ? 'start' : 'end';
  return pixel > start && pixel < end ? 'window' : 'outside';
}

/** drag moves what is held from a place to another; the view is that of the beginning. */
export function drag(world: World, v: View, grip: Grip, from: number, to: number): View {
  const by = to - from;
  switch (grip) {
    case 'start':
      return within(world, { ...v, ...ordered(clamp(v.x0 + by, world), v.x1) });
    case 'end':
      return within(world, { ...v, ...ordered(v.x0, clamp(v.x1 + by, world)) });
    case 'window':
      return within(world, { ...v, x0: v.x0 + by, x1: v.x1 + by });
    case 'outside': // a new window is drawn
      return within(world, { ...v, ...ordered(clamp(from, world), clamp(to, world)) });
  }
}

function ordered(a: number, b: number): { x0: number; x1: number } {
  return { x0: Math.min(a, b), x1: Math.max(a, b) };
}

function clamp(x: number, world: World): number {
  return Math.min(Math.max(0, x), world.x);
}
