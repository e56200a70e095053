import { expect, test } from 'vitest';
import type { Card } from '../api/client';
import { methodOf, setOf } from './methods';

const turing = { compute_capability: '7.5' } as Card;

test('a workload of a method is recognized, whatever else it sets', () => {
  for (const method of ['Full', 'LoRA', 'QLoRA'] as const) expect(methodOf({ model: 'gpt2', batch: 3, ...setOf(method, undefined) })).toBe(method);
  expect(methodOf({ model: 'bert' })).toBe('Full');
  expect(methodOf({ model: 'bert', adapter: 8, quantize: 'int8' })).toBe('QLoRA');
});

test('a card without bf16 gets fp16 autocast', () => {
  expect(setOf('LoRA', turing).precision).toBe('amp-fp16');
});
