/**
 * What colours look like on this page. Go says what a colour means (internal/timeline/group.go): 1 to 7 are
 * categories, 16 to 18 the rest, from 19 on stacks or modules. They are the colours of internal/draw.
 */

import type { Timeline } from './data';
import { background, idOfBand, idOfShape, type Palette } from './raster';

export type Theme = 'dark' | 'light';

export type RGB = number; // 0xrrggbb

interface Hues {
  named: Record<number, RGB>;
  stacks: RGB[];
  background: RGB;
  text: RGB;
}

const palettes: Record<Theme, Hues> = {
  dark: {
    named: {
      1: 0x4f7fc4,
      2: 0x6fb7e6,
      3: 0xc06fb0,
      4: 0x8a6fc0,
      5: 0x2f9d97,
      6: 0xa9a94e,
      7: 0x7a8a92,
      16: 0x3f4650,
      17: 0x6b6b6b,
      18: 0x8b8794,
    },
    stacks: [0xdc7f87, 0xb1623d, 0xc89344, 0x857d18, 0x7fae64, 0x1a8f69, 0x1db4b4, 0x0087ad, 0x6ca1e5, 0x746fbb, 0xb988d0, 0xa95c8a],
    background: 0x0a0a0a,
    text: 0xffffff,
  },
  light: {
    named: {
      1: 0x6f9be0,
      2: 0x8cc7ef,
      3: 0xd48fc6,
      4: 0xa58ddb,
      5: 0x5fbdb7,
      6: 0xc2c26e,
      7: 0x9fb0b8,
      16: 0x98a3b3,
      17: 0xa3a3a3,
      18: 0xd9d5e0,
    },
    stacks: [0xf898a0, 0xcc7a54, 0xe2ac5e, 0x9d9638, 0x97c87c, 0x3da880, 0x46cece, 0x28a0c7, 0x84baff, 0x8b87d6, 0xd3a1ea, 0xc474a2],
    background: 0xffffff,
    text: 0x101010,
  },
};

const firstStack = 19;

export function colorOf(theme: Theme, color: number): RGB {
  const p = palettes[theme];
  if (color >= firstStack) return p.stacks[(color - firstStack) % p.stacks.length]!;
  return p.named[color] ?? p.named[17]!;
}

export function css(color: RGB): string {
  return `#${color.toString(16).padStart(6, '0')}`;
}

/** mix goes a part (0 to 1) of the way from one colour to another. */
export function mix(a: RGB, b: RGB, part: number): RGB {
  const channel = (shift: number) => {
    const from = (a >> shift) & 255;
    return Math.round(from + (((b >> shift) & 255) - from) * part) << shift;
  };
  return channel(16) | channel(8) | channel(0);
}

/** shade makes a colour a little darker or lighter, so that neighbours of one group can be told apart. */
export function shade(c: RGB, step: number): RGB {
  const channel = (shift: number) => Math.min(255, Math.floor((((c >> shift) & 255) * (100 + 8 * step)) / 100)) << shift;
  return channel(16) | channel(8) | channel(0);
}

/** pixel is a colour as ImageData holds it, little-endian RGBA. */
export function pixel(c: RGB, alpha = 255): number {
  return ((alpha << 24) | ((c & 255) << 16) | (c & 0xff00) | (c >> 16)) >>> 0;
}

/** rgb is the inverse of pixel, without alpha. */
function rgb(p: number): RGB {
  return ((p & 255) << 16) | (p & 0xff00) | ((p >> 16) & 255);
}

/** Emphasis says what stands out: shapes and groups by index. */
export interface Emphasis {
  found: ((shape: number) => boolean) | null; // what a search found; the rest recedes
  selected: number; // number of an allocation, -1 for none
  group: number; // the only group in colour, -1 for all
}

export const calm: Emphasis = { found: null, selected: -1, group: -1 };

/** paletteOf gives every id of a picture its colour, and that of its edge. */
export function paletteOf(t: Timeline, theme: Theme, e: Emphasis): Palette {
  const p = palettes[theme];
  const n = 1 + t.shapes.count + t.bands.length;
  const colors = new Uint32Array(n); // 0, the background, is transparent
  const edges = new Uint32Array(n);
  const set = (id: number, color: RGB, prominent: boolean) => {
    if (!prominent) color = mix(color, p.background, 0.82);
    colors[id] = pixel(color);
    edges[id] = pixel(mix(color, p.background, 0.35));
  };
  const shades = t.groups.map((g) => [0, 1, 2].map((i) => shade(colorOf(theme, g.color), i - 1)));
  for (let s = 0; s < t.shapes.count; s++) {
    const group = t.shapes.group[s]!;
    const prominent = (!e.found || e.found(s)) && (e.group < 0 || e.group === group);
    const chosen = e.selected >= 0 && t.shapes.id[s] === e.selected;
    set(idOfShape(s), chosen ? p.text : shades[group]![(t.shapes.id[s]! + 2) % 3]!, prominent || chosen);
  }
  t.bands.forEach((band, i) => {
    const color = mix(colorOf(theme, t.groups[band.group]!.color), p.background, 0.2);
    set(idOfBand(t, i), color, !e.found && (e.group < 0 || e.group === band.group));
  });
  return { colors, edges };
}

/**
 * light makes one id of a palette stand out, as what the pointer is on, and returns how to undo that. The
 * pointer moves often and a palette is long, so it is changed in place.
 */
export function light({ colors, edges }: Palette, theme: Theme, id: number): () => void {
  if (id === background) return () => {};
  const { text, background: behind } = palettes[theme];
  const before = { color: colors[id]!, edge: edges[id]! };
  const lit = mix(rgb(before.color), text, 0.35);
  colors[id] = pixel(lit);
  edges[id] = pixel(mix(lit, behind, 0.35));
  return () => {
    colors[id] = before.color;
    edges[id] = before.edge;
  };
}
