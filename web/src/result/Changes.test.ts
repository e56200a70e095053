import { expect, test } from 'vitest';
import { isWorth } from './Changes';

test.each([
  ['a larger batch', { optimal_batch_size: 20, samples_per_second: 1 }, true],
  ['more speed', { optimal_batch_size: 10, samples_per_second: 6 }, true],
  ['neither', { optimal_batch_size: 10, samples_per_second: 5 }, false],
  ['a smaller batch and less speed', { optimal_batch_size: 3, samples_per_second: 2 }, false],
  ['what cannot be', { optimal_batch_size: 0, error: 'no bf16' }, false],
])('%s', (_, change, worth) => {
  expect(isWorth({ label: 'x', patch: {}, ...change }, 10, 5)).toBe(worth);
});
