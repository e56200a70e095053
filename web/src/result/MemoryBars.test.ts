import { expect, test } from 'vitest';
import type { Answer } from '../api/client';
import type { Found } from './batches';
import { flatNote, leftOf } from './MemoryBars';

const answer = (flat_to_batch?: number) =>
  ({ current_batch_size: 1, recommended_batch_size: 3, optimal_batch_size: 8, flat_to_batch, flat_phase: 'optimizer' }) as Answer;

test('equal bars are explained', () => {
  expect(flatNote(answer(6))).toBe('Up to batch 6, the optimizer step sets the peak and not the batch: these bars are about equal.');
  expect(flatNote(answer(2))).toBe('');
  expect(flatNote(answer())).toBe('');
});

const GiB = 2 ** 30;

test.each([
  ['fits', 8 * GiB, '14.00 GiB left, 58 % of the card'],
  ['tight', 22 * GiB - 13 * 2 ** 20, 'Tight: 13.00 MiB left of 22.00 GiB, less than a margin of 491.52 MiB'],
] as const)('what PyTorch has reserved is not left: %s', (verdict, reserved_bytes, text) => {
  const of = { limit_bytes: 22 * GiB, margin_bytes: 0.48 * GiB, gpu_total_bytes: 24 * GiB } as Answer;
  expect(leftOf({ verdict, reserved_bytes } as Found, of)).toBe(text);
});
