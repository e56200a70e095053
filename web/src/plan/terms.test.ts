import { expect, test } from 'vitest';
import { planQuestion, termsOf, withTerms } from './terms';

test('terms are kept in the address, beside the workload', () => {
  const address = withTerms('model=gpt2', { max_gpus: 8, full: true });
  expect(address).toBe('model=gpt2&max_gpus=8&full=true');
  expect(termsOf(address)).toEqual({ max_gpus: 8, full: true });
  expect(withTerms(address, {})).toBe('model=gpt2');
});

test('a plan is not told what it chooses', () => {
  const asked = planQuestion({ workload: { model: 'gpt2', gpu: 't4', batch: 4, precision: 'bf16' }, run_tokens: 1e9 }, { days: 2 });
  expect(asked).toEqual({ workload: { model: 'gpt2', precision: 'bf16' }, tokens: 1e9, within: { days: 2 } });
});
