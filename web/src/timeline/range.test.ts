import { expect, test } from 'vitest';
import { rangeBetween, rangeOf, rangeSeen, rangeText } from './range';

test('a range is the same after the address', () => {
  expect(rangeOf(rangeText({ from: 3, to: 9 }))).toEqual({ from: 3, to: 9 });
  for (const text of ['', '3', '9..3', '3..3', 'a..b']) expect(rangeOf(text)).toBeNull();
});

test('a range has an event, whichever way one drags, and stays within the recording', () => {
  expect(rangeBetween(5.2, 9.8, 100)).toEqual({ from: 4, to: 9 });
  expect(rangeBetween(9.8, 5.2, 100)).toEqual({ from: 4, to: 9 });
  expect(rangeBetween(5.2, 5.3, 100)).toEqual({ from: 4, to: 5 });
  expect(rangeBetween(-20, 500, 100)).toEqual({ from: 0, to: 100 });
  expect(rangeSeen({ x0: 0, x1: 101, y0: 0, y1: 1 }, 100)).toEqual({ from: 0, to: 100 });
});
