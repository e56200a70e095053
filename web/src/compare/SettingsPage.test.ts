import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { cellsOn } from './SettingsPage';

const precisionsOn = (capability: string) => [
  ...new Set(cellsOn({ compute_capability: capability } as Schemas['Card']).map(({ setting }) => setting.precision)),
];

test('a card is asked about the precisions that it has', () => {
  expect(precisionsOn('7.5')).toEqual(['fp32', 'amp-fp16']);
  expect(precisionsOn('8.6')).toContain('bf16');
  expect(cellsOn(undefined)).toHaveLength(precisionsOn('12.0').length * 10);
  expect(cellsOn(undefined, false)).toHaveLength(precisionsOn('12.0').length * 5);
});
