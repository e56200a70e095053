import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { pointsOf, scaleOfFactors, ticksOf } from './Picture';

test('what has a price is a point, and what does not fit says why', () => {
  const option = { dollars: 50, days: 2, gpus: 1, gpu_name: 'NVIDIA A10', changes: [{ label: 'LoRA of rank 16', patch: {} }], trains: 'adapters', command: 'a', simulated: true } as Schemas['Option'];
  const misfit = { dollars: 20, days: 1, gpus: 2, gpu: 'a10', trains: 'all weights', reason: 'it needs 45 GiB' } as Schemas['Misfit'];
  const points = pointsOf({ options: [option, { ...option, dollars: undefined }], misfits: [misfit] }, [{ names: ['Cheapest'], option }]);
  expect(points.map(({ fits, name, text }) => [fits, name, text])).toEqual([
    [false, undefined, 'Does not fit: it needs 45 GiB.'],
    [true, 'Cheapest', 'LoRA of rank 16'],
  ]);
});

test('a scale of factors has round numbers', () => {
  expect(scaleOfFactors([1, 100], [0, 200])(10)).toBe(100);
  expect(ticksOf(scaleOfFactors([8, 90], [0, 1]), 5)).toEqual([10, 20, 50]);
  expect(ticksOf(scaleOfFactors([1, 1e6], [0, 1]), 5)).toEqual([1, 10, 100, 1000, 10000, 100000, 1000000]);
});
