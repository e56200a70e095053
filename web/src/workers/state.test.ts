import { expect, test } from 'vitest';
import { ableTo, emulation, type State, stateOf } from './state';

const now = Date.parse('2026-11-15T09:00:00Z');
const seen = '2026-11-15T08:59:50Z';
const free = [{ id: 'a10' }];
const busy = [{ id: 'a10' }, { id: 'a10', job: 'j1' }];

test.each<[State, Omit<Parameters<typeof stateOf>[0], 'id' | 'host'>]>([
  ['ready', { cards: free, seen }],
  ['busy', { cards: busy, seen }],
  ['draining', { cards: busy, seen, draining: true, resident: true }],
  ['draining', { cards: free, seen, draining: true }],
  ['drained', { cards: free, seen, draining: true, resident: true }],
  ['lost', { cards: busy, seen: '2026-11-15T08:59:00Z', draining: true }],
])('%s', (state, worker) => {
  expect(stateOf({ id: 'w', host: 'h', ...worker }, 30, now)).toBe(state);
});

test('a worker that drains takes nothing, and one that emulates has no card', () => {
  const workers = [
    { id: 'a', host: 'h', cards: free },
    { id: 'b', host: 'h', cards: free, draining: true },
    { id: 'c', host: 'h', cards: [{ id: emulation, name: 'any card, emulated with PyTorch 2.11' }] },
  ];
  expect(ableTo(workers, 'a10').map(({ id }) => id)).toEqual(['a']);
  expect(ableTo(workers, emulation).map(({ id }) => id)).toEqual(['c']);
});
