import { expect, test } from 'vitest';
import { amountOf } from './amount';

test.each([
  ['1B', 1e9],
  ['300M', 300e6],
  ['1e9', 1e9],
  ['1.5 t', 1.5e12],
  ['20k', 20_000],
  ['1,000,000', 1e6],
  ['7', 7],
  ['0', 0],
  ['many', undefined],
  ['1BB', undefined],
  ['-5', undefined],
  ['', undefined],
])('%s is %s', (text, amount) => expect(amountOf(text)).toBe(amount));
