import { expect, test } from 'vitest';
import { type State, stateOf } from './state';

const now = Date.parse('2026-11-15T09:00:00Z');
const seen = '2026-11-15T08:59:50Z';
const free = [{ id: 'a10' }];
const busy = [{ id: 'a10' }, { id: 'a10', job: 'j1' }];

test.each<[State, Omit<Parameters<typeof stateOf>[0], 'id' | 'host'>]>([
  ['ready', { cards: free, seen }],
  ['at work', { cards: busy, seen }],
  ['draining', { cards: busy, seen, draining: true, resident: true }],
  ['draining', { cards: free, seen, draining: true }],
  ['drained', { cards: free, seen, draining: true, resident: true }],
  ['lost', { cards: busy, seen: '2026-11-15T08:59:00Z', draining: true }],
])('%s', (state, worker) => {
  expect(stateOf({ id: 'w', host: 'h', ...worker }, 30, now)).toBe(state);
});
