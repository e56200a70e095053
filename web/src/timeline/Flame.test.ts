import { expect, test } from 'vitest';
import { boxesOf } from './Flame';
import type { FlameRow } from './queries';

const row = (name: string, total_bytes: number, children?: FlameRow[]): FlameRow => ({ name, kind: 'user', total_bytes, count: 1, children });
const all = row('all', 100, [row('main', 75, [row('forward', 50), row('loss', 25)]), row('eval', 25), row('tiny', 0)]);

test('rows are as wide as their memory, below who called them', () => {
  expect(boxesOf(all, []).map(({ row: { name }, depth, left, width }) => [name, depth, left, width])).toEqual([
    ['all', 0, 0, 1],
    ['main', 1, 0, 0.75],
    ['forward', 2, 0, 0.5],
    ['loss', 2, 0.5, 0.25],
    ['eval', 1, 0.75, 0.25],
  ]);
});

test('a row that is looked at alone is as wide as all, under its callers', () => {
  expect(boxesOf(all, [0]).map(({ row: { name }, depth, width }) => [name, depth, width])).toEqual([
    ['all', 0, 1],
    ['main', 1, 1],
    ['forward', 2, 50 / 75],
    ['loss', 2, 25 / 75],
  ]);
});
