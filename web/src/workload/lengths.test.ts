import { expect, test } from 'vitest';
import { describeLengths, parseLengths } from './lengths';

test.each([
  ['128\n512\n128\n', { 128: 2, 512: 1 }],
  ['[128, 512]', { 128: 1, 512: 1 }],
  ['{"128": 900}', { 128: 900 }],
  ['', 'It contains no numbers.'],
  ['12\nabc', '“abc” is not a number of tokens.'],
  ['{"a": 1}', 'It must say how many samples each length has, as {"128": 900, "512": 40}.'],
])('%s', (text, lengths) => {
  expect(parseLengths(text)).toEqual(lengths);
});

test('lengths in a few words', () => {
  expect(describeLengths({ 128: 900, 512: 100 })).toBe('1,000 samples of 128 to 512 tokens');
});
