import { describe, expect, test } from 'vitest';
import { calm, light, paletteOf, pixel } from './colors';
import { idAt, mark, paint, raster, sample } from './raster';
import { differences, timelineOf } from './testing';
import type { Timeline } from './data';
import type { View } from './view';

/** drawn shows a picture as letters: "." is empty, a is the first shape. */
function drawn(t: Timeline, view: View, width: number, height: number): string[] {
  const { ids } = raster(t, view, width, height, new Uint32Array(width * height));
  return letters(ids, width);
}

function letters(ids: Uint32Array, width: number): string[] {
  const all = [...ids].map((id) => (id === 0 ? '.' : String.fromCharCode(96 + id))).join('');
  return all.match(new RegExp(`.{${width}}`, 'g')) ?? [];
}

const stack = timelineOf(6, [
  { size: 2, from: 0, to: 4 },
  { size: 1, from: 1, to: 6 },
  { size: 1, from: 2, to: 3 },
]);
const all = { x0: 0, x1: 6, y0: 0, y1: 5 };

describe('raster', () => {
  test('stacks allocations and lets them fall when what is below is freed', () => {
    expect(drawn(stack, all, 6, 5)).toEqual([
      '......', //
      '..c...',
      '.bbb..',
      'aaaa..',
      'aaaabb',
    ]);
  });

  test('zooms in without gaps between neighbours', () => {
    expect(drawn(stack, { x0: 2, x1: 5, y0: 1, y1: 4 }, 6, 6)).toEqual([
      'cc....', //
      'cc....',
      'bbbb..',
      'bbbb..',
      'aaaa..',
      'aaaa..',
    ]);
  });

  test('shows the highest moment under a pixel', () => {
    expect(drawn(stack, all, 2, 5)).toEqual(['..', 'c.', 'bb', 'aa', 'aa']);
  });

  test('leaves empty what lies beyond the window it has', () => {
    expect(drawn(stack, { x0: 4, x1: 10, y0: 0, y1: 1 }, 6, 1)).toEqual(['bb....']);
    expect(drawn(stack, { x0: -2, x1: 4, y0: 0, y1: 1 }, 6, 1)).toEqual(['..aaaa']);
  });

  test('puts bands where they stand', () => {
    const t = timelineOf(4, [{ size: 1, from: 0, to: 4 }], {
      active: differences([2, 3, 3, 1]),
      bands: [{ group: 0, count: 9, largest: 1, bottoms: differences([1, 1, 1, 1]), heights: differences([1, 2, 2, 0]) }],
    });
    expect(drawn(t, { x0: 0, x1: 4, y0: 0, y1: 3 }, 4, 3)).toEqual(['.bb.', 'bbb.', 'aaaa']);
  });

  test('says what is at a pixel', () => {
    const picture = raster(stack, all, 6, 5, new Uint32Array(30));
    expect(idAt(picture, 2.9, 1.2)).toBe(3);
    expect(idAt(picture, -1, 0)).toBe(0);
    expect(idAt(picture, 6, 0)).toBe(0);
  });

  test('what was found is seen, however thin', () => {
    const t = timelineOf(2, [
      { size: 1000, from: 0, to: 2 },
      { size: 1, from: 0, to: 2 },
      { size: 1000, from: 0, to: 2 },
    ]);
    const view = { x0: 0, x1: 2, y0: 0, y1: 2001 };
    const picture = raster(t, view, 2, 4, new Uint32Array(8));
    expect(letters(picture.ids, 2)).toEqual(['cc', 'cc', 'aa', 'aa']);
    mark(t, view, picture, (s) => s === 1);
    expect(letters(picture.ids, 2)).toEqual(['cc', 'cc', 'bb', 'aa']);
  });
});

test('sampling finds the first pixel of every column', () => {
  const s = sample(stack, all, 12);
  expect([...s.column]).toEqual([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
  expect([...s.before]).toEqual([0, 2, 4, 6, 8, 10, 12]);
});

test('paint draws the upper edge of what is high enough', () => {
  const picture = { width: 1, height: 5, ids: Uint32Array.from([0, 1, 1, 1, 2]) };
  const out = new Uint32Array(5);
  paint(picture, { colors: Uint32Array.from([0, 10, 20]), edges: Uint32Array.from([0, 11, 21]) }, out);
  expect([...out]).toEqual([0, 11, 10, 10, 20]);
});

test('a palette lets stand out what was found, hovered or selected', () => {
  const plain = paletteOf(stack, 'dark', calm).colors;
  const found = paletteOf(stack, 'dark', { ...calm, found: (s) => s === 1 }).colors;
  expect(found[2]!).toBe(plain[2]!);
  expect(found[1]!).not.toBe(plain[1]!);
  const selected = paletteOf(stack, 'dark', { ...calm, found: () => false, selected: 2 }).colors;
  expect(selected[3]!).toBe(pixel(0xffffff));
  const hovered = paletteOf(stack, 'dark', calm);
  const unlight = light(hovered, 'dark', 1);
  expect(hovered.colors[1]!).not.toBe(plain[1]!);
  expect(hovered.colors.slice(2)).toEqual(plain.slice(2));
  unlight();
  expect(hovered.colors).toEqual(plain);
  expect(plain[0]!).toBe(0);
});
