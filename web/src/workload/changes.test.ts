import { expect, test } from 'vitest';
import { labelsOf, patchOf } from './changes';

const changes = [
  { label: 'LoRA of rank 16', patch: { adapter: { kind: 'lora', rank: 16, targets: 'all-linear' } } },
  { label: 'batch 4 accumulated 4 times', patch: { batch: 4, accumulate: 4 } },
];

test('a set of changes is one patch and one name', () => {
  expect(patchOf(changes)).toEqual({ adapter: { kind: 'lora', rank: 16, targets: 'all-linear' }, batch: 4, accumulate: 4 });
  expect(labelsOf(changes)).toBe('LoRA of rank 16 + batch 4 accumulated 4 times');
});

test('no changes are an empty patch', () => {
  expect(patchOf(null)).toEqual({});
  expect(labelsOf(undefined)).toBe('');
});
