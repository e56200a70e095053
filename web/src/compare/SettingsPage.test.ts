import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { settingsOn } from './SettingsPage';

const precisionsOn = (capability: string) => [
  ...new Set(settingsOn({ compute_capability: capability } as Schemas['Card']).map(({ precision }) => precision)),
];

test('a card is asked about the precisions that it has', () => {
  expect(precisionsOn('7.5')).toEqual(['fp32', 'amp-fp16']);
  expect(precisionsOn('8.6')).toContain('bf16');
  expect(settingsOn(undefined)).toHaveLength(precisionsOn('12.0').length * 6);
});
