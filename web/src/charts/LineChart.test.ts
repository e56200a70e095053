import { expect, test } from 'vitest';
import { nearest } from './LineChart';

test('the nearest point is the one that the pointer means', () => {
  expect([-5, 1, 8, 9, 400].map((value) => nearest([1, 16, 266], value))).toEqual([0, 0, 0, 1, 2]);
});
