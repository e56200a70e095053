import { expect, test } from 'vitest';
import { lead } from './WaysToFit';

const option = (...labels: string[]) => ({ changes: labels.map((label) => ({ label, patch: {} })) }) as never;

test.each([
  [[option('LoRA')], 'Each of these alone is enough.'],
  [[option('SGD'), option('LoRA', 'checkpointing')], 'Each line is enough by itself.'],
  [[option('bf16 weights', 'SGD')], 'No single change is enough; each line is what it takes together.'],
  [[], 'Nothing that was tried makes it fit this card, alone or combined.'],
])('the lead says what %j is', (options, sentence) => {
  expect(lead({ options, batch: 8 })).toContain(sentence);
});
