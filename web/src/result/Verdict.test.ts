import { expect, test } from 'vitest';
import { sentence } from './Verdict';

const gib = 2 ** 30;
const subject = { title: 'GPT-2', card: 'NVIDIA A10', workload: {}, batch: 120 };

test.each([
  ['fits', 2 * gib, 'Full fine-tuning of GPT-2 at batch 120 fits on 1 × NVIDIA A10, with 2.00 GiB to spare.'],
  ['tight', gib / 64, /with only 16\.00 MiB to spare\. Keep 450\.00 MiB free/],
  ['does not fit', -6 * gib, 'Full fine-tuning of GPT-2 at batch 120 does not fit on 1 × NVIDIA A10: 6.00 GiB too much.'],
  ['does not fit', gib, /its memory is too fragmented/],
  ['does not fit', undefined, 'Full fine-tuning of GPT-2 at batch 120 does not fit on 1 × NVIDIA A10.'],
] as const)('%s, %s left', (verdict, left, said) => {
  expect(sentence(subject, verdict, left, 450 * 2 ** 20)).toMatch(said);
});

test('how many GPUs, and the method', () => {
  const workload = { adapter: 16, parallel: { kind: 'ddp', gpus: 8 } };
  expect(sentence({ ...subject, workload }, 'fits', gib, gib)).toBe('LoRA of GPT-2 at batch 120 fits on 8 × NVIDIA A10, with 1.00 GiB to spare on each.');
});
