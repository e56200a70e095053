import { expect, test } from 'vitest';
import { columnAt, highest, placeOf, summary } from './data';
import { differences, timelineOf } from './testing';

const t = timelineOf(
  5,
  [
    { size: 4, from: 0, to: 2 },
    { size: 1, from: 1, to: 5 },
  ],
  {
    active: differences([4, 7, 3, 1, 1]),
    bands: [
      { group: 0, count: 2, largest: 1, bottoms: differences([4, 5, 1, 1, 1]), heights: differences([0, 1, 1, 0, 0]) },
      { group: 0, count: 1, largest: 1, bottoms: differences([4, 6, 2, 1, 1]), heights: differences([0, 1, 1, 0, 0]) },
    ],
  },
);

test('shapes become boxes', () => {
  const { shape, start, end, offset } = t.boxes;
  expect([...shape].map((s, i) => [s, start[i]!, end[i]!, offset[i]!])).toEqual([
    [0, 0, 2, 0],
    [1, 1, 2, 4],
    [1, 2, 5, 0],
  ]);
  expect([...t.shapes.freed]).toEqual([1, -1]);
});

test('bands go from their bottoms as high as they are', () => {
  expect([...t.bands[1]!.top]).toEqual([4, 7, 3, 1, 1]);
  expect([...t.bands[1]!.bottom]).toEqual([...t.bands[0]!.top]);
  expect([...t.bands[0]!.bottom]).toEqual([4, 5, 1, 1, 1]);
});

test('columns and places on the axis agree', () => {
  const part = { ...summary(t), from: 100, to: 199 };
  expect(columnAt(part, 100)).toBe(0);
  expect(columnAt(part, 200)).toBe(5);
  expect(placeOf(part, columnAt(part, 137))).toBeCloseTo(137);
});

test('a summary has no shapes, and lines have a highest value', () => {
  expect(summary(t)).not.toHaveProperty('shapes');
  expect(highest(t.lines.active)).toBe(7);
  expect(highest(t.lines.active, 2)).toBe(3);
  expect(highest(null)).toBe(0);
});
