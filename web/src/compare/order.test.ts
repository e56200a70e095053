import { expect, test } from 'vitest';
import { sorted } from './order';

const rows = [{ name: 'b', price: 2 }, { name: 'c' }, { name: 'a', price: 1 }] as { name: string; price?: number }[];

test('rows are sorted both ways, with the unknown last', () => {
  expect(sorted(rows, { key: 'price', down: false }).map((r) => r.name)).toEqual(['a', 'b', 'c']);
  expect(sorted(rows, { key: 'price', down: true }).map((r) => r.name)).toEqual(['b', 'a', 'c']);
  expect(sorted(rows, { key: 'name', down: true }).map((r) => r.name)).toEqual(['c', 'b', 'a']);
});
