import { expect, test } from 'vitest';
import { statedError } from './Evidence';

const errors = { cases: 27, exact: 0, within_1_percent: 2, median: 0.068, percentile_95: 0.24, worst: 0.27, lowest: -0.23, highest: 0.27, most_parameters: 124_439_808 };

test('the stated error is honest about both ends', () => {
  expect(statedError(errors)).toBe('95 % within 24 %');
  expect(statedError({ ...errors, exact: 27, percentile_95: 0 })).toBe('exact in 27 of 27');
});
