import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { forbidden } from './FailureBox';

test('what forbade more memory is named: a limit, or the card', () => {
  const explanation = { limit_and_not_device: true } as Schemas['Explanation'];
  expect(forbidden({ explanation, device_free_bytes: 2 ** 34 })).toMatch(/^A limit forbade more, not the card: .* The card still had 16\.00 GiB free\.$/);
  expect(forbidden({ device_free_bytes: 2 ** 20 })).toBe('The card had 1.00 MiB left.');
});
