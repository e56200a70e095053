/**
 * Scene turns what the page wants to see into pixels, doing again only what changed: the raster when the
 * view or the data did, the palette when the emphasis did, the colours of the pixels when either did.
 * It runs in a worker (scene.worker.ts) but knows nothing of it.
 */

import { light, paletteOf, type Theme } from './colors';
import { columnAt, type Timeline } from './data';
import { matcher, parseQuery } from './query';
import { background, idAt, mark, paint, type Palette, raster, type Picture } from './raster';
import { same, type View, type World } from './view';
import { covers } from './window';

/** Look is all that a picture depends on, apart from the data. Sizes are in pixels of the device. */
export interface Look {
  view: View;
  world: World;
  width: number;
  height: number;
  theme: Theme;
  query: string;
  atAddress: number[]; // allocations that the server found for an address
  selected: number; // number of an allocation, -1 for none
  group: number; // the only group in colour, -1 for all
  pointer: { x: number; y: number } | null; // in the picture
}

/** Under is what is at a place of the picture. */
export type Under =
  | { kind: 'shape'; id: number; size: number; group: number; born: number; freed: number; frames: string[] }
  | { kind: 'band'; group: number; count: number; largest: number };

export interface Shown {
  pixels: Uint32Array | null; // null if the picture is as it was
  under: Under | null;
  found: number; // shapes that the search found, -1 without one
}

export class Scene {
  private whole: Timeline | null = null;
  private window: Timeline | null = null;
  private drawn: { timeline: Timeline; look: Look } | null = null;
  private picture: Picture = { width: 0, height: 0, ids: new Uint32Array(0) };
  private pixels = new Uint32Array(0);
  private palette: Palette = { colors: new Uint32Array(0), edges: new Uint32Array(0) };
  private unlight = () => {};
  private hovered = background;
  private found = -1;

  setWhole(t: Timeline) {
    this.whole = t;
    this.window = null;
    this.drawn = null;
  }

  setWindow(t: Timeline | null) {
    this.window = t;
    this.drawn = null;
  }

  /** look draws; it needs data. */
  look(look: Look): Shown {
    const t = this.timelineFor(look);
    if (!t) return { pixels: null, under: null, found: -1 };
    const last = this.drawn?.timeline === t ? this.drawn.look : null;
    const moved = !last || !same(last.view, look.view) || last.width !== look.width || last.height !== look.height;
    const searched = !last || last.query !== look.query || !sameNumbers(last.atAddress, look.atAddress);
    if (moved || searched) this.draw(t, look);
    const hovered = look.pointer ? idAt(this.picture, look.pointer.x, look.pointer.y) : background;
    const recolored = searched || last.theme !== look.theme || last.selected !== look.selected || last.group !== look.group;
    const changed = moved || recolored || hovered !== this.hovered;
    if (recolored) this.recolor(t, look);
    if (changed) {
      this.unlight();
      this.unlight = light(this.palette, look.theme, hovered);
      paint(this.picture, this.palette, this.pixels);
    }
    this.hovered = hovered;
    this.drawn = { timeline: t, look };
    return { pixels: changed ? this.pixels : null, under: describe(t, hovered), found: this.found };
  }

  /** pick says what is at the pointer of a look and leaves the picture as it is. */
  pick(look: Look): Under | null {
    const t = this.timelineFor(look);
    if (!t || !look.pointer) return null;
    const { view, width, height, pointer } = look;
    return describe(t, idAt(raster(t, view, width, height, new Uint32Array(width * height)), pointer.x, pointer.y));
  }

  private timelineFor(look: Look): Timeline | null {
    return this.window && covers(this.window, look.view, look.world) ? this.window : this.whole;
  }

  private draw(t: Timeline, look: Look) {
    const { view, width, height } = look;
    const n = width * height;
    if (this.picture.ids.length !== n) {
      this.picture.ids = new Uint32Array(n);
      this.pixels = new Uint32Array(n);
    }
    this.picture = raster(t, view, width, height, this.picture.ids);
    const found = this.finder(t, look);
    if (found) mark(t, view, this.picture, found);
  }

  private recolor(t: Timeline, look: Look) {
    const found = this.finder(t, look);
    this.found = -1;
    if (found) for (let s = 0, n = (this.found = 0); s < t.shapes.count; s++) if (found(s)) this.found = ++n;
    this.palette = paletteOf(t, look.theme, { found, selected: look.selected, group: look.group });
    this.unlight = () => {};
  }

  private finder(t: Timeline, look: Look) {
    const query = parseQuery(look.query);
    return query && matcher(t, query, new Set(look.atAddress));
  }

  /** liveAt lists the shapes that a view shows at a place on the x axis, from the top to the bottom. */
  liveAt(look: Look, x: number): Under[] {
    const t = this.timelineFor(look);
    if (!t) return [];
    const column = Math.min(Math.max(Math.floor(columnAt(t, x)), 0), t.lines.columns - 1);
    const { count, shape, start, end, offset } = t.boxes;
    const here: [number, number][] = [];
    for (let i = 0; i < count; i++) if (start[i]! <= column && column < end[i]!) here.push([offset[i]!, shape[i]!]);
    return here.toSorted((a, b) => b[0] - a[0]).map(([, s]) => describe(t, s + 1)!);
  }
}

function sameNumbers(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((n, i) => n === b[i]!);
}

function describe(t: Timeline, id: number): Under | null {
  if (id === background) return null;
  const s = id - 1;
  if (s >= t.shapes.count) {
    const { group, count, largest } = t.bands[s - t.shapes.count]!;
    return { kind: 'band', group, count, largest };
  }
  const { shapes } = t;
  return {
    kind: 'shape',
    id: shapes.id[s]!,
    size: shapes.size[s]!,
    group: shapes.group[s]!,
    born: shapes.born[s]!,
    freed: shapes.freed[s]!,
    frames: t.stacks[shapes.stack[s]!]!.map((f) => t.frames[f]!),
  };
}
