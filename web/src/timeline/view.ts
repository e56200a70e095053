/**
 * The part of a timeline that is looked at, and how it moves. x counts moments (see data.ts), y bytes.
 * Every function returns a new view; none leaves the world.
 */

export interface View {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
}

/** World is all there is to see: x from 0, y from 0. */
export interface World {
  x: number;
  y: number;
}

const closestX = 8; // moments
const closestY = 512; // bytes, the allocator's unit

export function whole(world: World): View {
  return { x0: 0, x1: world.x, y0: 0, y1: world.y };
}

/** within keeps a view in the world, moving it rather than cutting it. */
export function within(world: World, v: View): View {
  const [x0, x1] = interval(v.x0, v.x1, world.x, closestX);
  const [y0, y1] = interval(v.y0, v.y1, world.y, closestY);
  return { x0, x1, y0, y1 };
}

function interval(from: number, to: number, most: number, closest: number): [number, number] {
  const length = Math.min(most, Math.max(to - from, closest));
  const widened = (from + to - length) / 2; // about its middle, if it was too narrow
  const start = Math.min(Math.max(0, to - from < length ? widened : from), most - length);
  return [start, start + length];
}

/** zoomX narrows (factor below 1) or widens a view; what is at a place stays there. */
export function zoomX(world: World, v: View, factor: number, at = (v.x0 + v.x1) / 2): View {
  const length = Math.min(world.x, Math.max((v.x1 - v.x0) * factor, Math.min(closestX, world.x)));
  const share = (at - v.x0) / (v.x1 - v.x0);
  const x0 = at - share * length;
  return within(world, { ...v, x0, x1: x0 + length });
}

export function zoomY(world: World, v: View, factor: number, at = v.y0): View {
  const length = Math.min(world.y, Math.max((v.y1 - v.y0) * factor, Math.min(closestY, world.y)));
  const share = (at - v.y0) / (v.y1 - v.y0);
  const y0 = at - share * length;
  return within(world, { ...v, y0, y1: y0 + length });
}

/** move pans by shares of the view. */
export function move(world: World, v: View, dx: number, dy: number): View {
  const x = dx * (v.x1 - v.x0);
  const y = dy * (v.y1 - v.y0);
  return within(world, { x0: v.x0 + x, x1: v.x1 + x, y0: v.y0 + y, y1: v.y1 + y });
}

/** around shows a moment in the middle, not wider than now and not wider than a share of the world. */
export function around(world: World, v: View, x: number, share = 1): View {
  const half = Math.min(v.x1 - v.x0, world.x * share) / 2;
  return within(world, { ...v, x0: x - half, x1: x + half });
}

/** reveal moves as little as needed for a moment to be seen. */
export function reveal(world: World, v: View, x: number): View {
  const width = v.x1 - v.x0;
  const margin = width / 10;
  if (x < v.x0 + margin && v.x0 > 0) return within(world, { ...v, x0: x - margin, x1: x - margin + width });
  if (x > v.x1 - margin && v.x1 < world.x) return within(world, { ...v, x0: x + margin - width, x1: x + margin });
  return v;
}

/** between is the view a part of the way (0 to 1) from one to another; zooming looks even. */
export function between(a: View, b: View, part: number): View {
  const eased = part * part * (3 - 2 * part);
  const mix = (from: number, to: number) => from + (to - from) * eased;
  return { x0: mix(a.x0, b.x0), x1: mix(a.x1, b.x1), y0: mix(a.y0, b.y0), y1: mix(a.y1, b.y1) };
}

export function same(a: View, b: View): boolean {
  return a.x0 === b.x0 && a.x1 === b.x1 && a.y0 === b.y0 && a.y1 === b.y1;
}

/** Frame is where in a canvas the plot lies, in CSS pixels. */
export interface Frame {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Scale {
  x(place: number): number;
  y(bytes: number): number;
  place(x: number): number;
  bytes(y: number): number;
}

export function scale(frame: Frame, v: View): Scale {
  const perX = frame.width / (v.x1 - v.x0);
  const perY = frame.height / (v.y1 - v.y0);
  const bottom = frame.top + frame.height;
  return {
    x: (place) => frame.left + (place - v.x0) * perX,
    y: (bytes) => bottom - (bytes - v.y0) * perY,
    place: (x) => v.x0 + (x - frame.left) / perX,
    bytes: (y) => v.y0 + (bottom - y) / perY,
  };
}
