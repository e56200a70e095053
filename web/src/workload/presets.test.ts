import { expect, test } from 'vitest';
import type { Card } from '../api/client';
import { addressOf, questionOf } from './address';
import { presetOf, presets, setOf } from './presets';

const card = (compute_capability: string) => ({ compute_capability }) as Card;

test.each(presets)('$name is found again in the address', (preset) => {
  const { workload } = questionOf(addressOf({ workload: { model: 'bert', batch: 4, ...setOf(preset, card('8.6')) } }));
  expect(presetOf(workload, card('8.6'))).toBe(preset);
  expect(presetOf({ ...workload, checkpointing: undefined }, card('8.6'))).toBeUndefined();
});

test('a card without bf16 gets fp16', () => {
  expect(setOf(presets[0]!, card('7.5')).precision).toBe('amp-fp16');
  expect(setOf(presets[3]!, card('7.5')).precision).toBeUndefined();
});
