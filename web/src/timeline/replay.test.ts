import { expect, test } from 'vitest';
import { addressKey, commandOf, flags, replayQuery, type WhatIf, whatIfOf } from './replay';

const nothing: WhatIf = { limit: '', 'expandable-segments': '', 'max-split-size': '', 'gc-threshold': '', roundup: '', 'graph-pool': '' };

test('what is left empty is as recorded', () => {
  expect(replayQuery(nothing)).toEqual({});
  expect(commandOf(nothing)).toBe('memorymark snapshot replay FILE');
});

test('amounts are written as on the command line', () => {
  const asked = { ...nothing, limit: '8GiB', 'max-split-size': '128 MiB', 'gc-threshold': '0.8', roundup: '4', 'expandable-segments': 'false', 'graph-pool': '1GiB' };
  expect(replayQuery(asked)).toEqual({ limit_bytes: 2 ** 33, max_split_size_bytes: 2 ** 27, gc_threshold: 0.8, roundup: 4, expandable_segments: 'false', graph_pool_bytes: 2 ** 30 });
  expect(commandOf({ ...asked, 'max-split-size': '128MiB' })).toBe(
    'memorymark snapshot replay FILE --limit 8GiB --expandable-segments=false --max-split-size 128MiB --gc-threshold 0.8 --roundup 4 --graph-pool 1GiB',
  );
});

test.each([
  ['limit', 'much'],
  ['limit', '>8GiB'],
  ['max-split-size', '128 parsecs'],
  ['gc-threshold', 'half'],
] as const)('%s %s cannot be read', (flag, text) => {
  expect(replayQuery({ ...nothing, [flag]: text })).toMatchObject({ wrong: flag });
});

test('it survives the address, apart from the keys of a workload', () => {
  const address = new URLSearchParams({ expandable_segments: 'true', [addressKey('limit')]: '8GiB', [addressKey('expandable-segments')]: 'true' });
  expect(whatIfOf((key) => address.get(key) ?? '')).toEqual({ ...nothing, limit: '8GiB', 'expandable-segments': 'true' });
  expect(flags).toHaveLength(Object.keys(nothing).length);
});
