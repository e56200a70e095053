import { expect, test } from 'vitest';
import type { Answer } from '../api/client';
import { flatNote } from './MemoryBars';

const answer = (flat_to_batch?: number) =>
  ({ current_batch_size: 1, recommended_batch_size: 3, optimal_batch_size: 8, flat_to_batch, flat_phase: 'optimizer' }) as Answer;

test('equal bars are explained', () => {
  expect(flatNote(answer(6))).toBe('Up to batch 6, the optimizer step sets the peak and not the batch: these bars are about equal.');
  expect(flatNote(answer(2))).toBe('');
  expect(flatNote(answer())).toBe('');
});
