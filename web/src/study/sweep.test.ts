import { expect, test } from 'vitest';
import { gridOf } from './grid';
import { cellIn, fallsWithContext, reportOf, type SweptCell, sweepOf } from './sweep';

const grid = gridOf('sizes=2.7B&contexts=128,512&precisions=fp32,amp-fp16&gpu=h200&batch=8');

test('a sweep has every combination of a row', () => {
  expect(sweepOf({ size: '2.7B', precision: 'fp32' }, grid)).toEqual({
    workload: { model: 'lm-2.7b', batch: 8, gpu: 'h200' },
    axes: [
      { key: 'precision', values: ['fp32'] },
      { key: 'sequence', values: [128, 512] },
      { key: 'phase', values: ['forward', 'train'] },
    ],
  });
});

const cell = (phase: string, sequence: string): SweptCell => ({ values: { phase, sequence, precision: 'fp32' } });

test('cells are found by what was asked for', () => {
  const swept = [{ size: 'small', precision: 'fp32', cells: [cell('forward', '128'), cell('train', '128'), cell('train', '512')] }];
  const wanted = { size: 'small', context: '128', part: 'training', precision: 'fp32' };
  expect(cellIn(swept, wanted)).toBe(swept[0]!.cells[1]);
  expect(cellIn(swept, { ...wanted, size: 'xl' })).toBeUndefined();
  expect(cellIn(swept, { ...wanted, precision: 'bf16' })).toBeUndefined();
});

test('a report is of the same contexts and card, against the mixed precision that is chosen', () => {
  expect(reportOf('2.7B', grid)).toEqual({ models: ['lm-2.7b'], sequences: [128, 512], precision: 'amp-fp16', batch: 8, gpu: 'h200' });
  expect(reportOf('xl', gridOf('precisions=fp32')).precision).toBe('amp-bf16');
});

const at = (sequence: string, allocated: number) => ({ ...cell('train', sequence), peak: { allocated, reserved: allocated } }) as SweptCell;

test('a peak that falls with the context is noticed', () => {
  const small = gridOf('sizes=small&contexts=128,256&precisions=fp32');
  const row = { size: 'small', precision: 'fp32' };
  expect(fallsWithContext(small, [{ ...row, cells: [at('128', 9), at('256', 8)] }])).toBe(true);
  expect(fallsWithContext(small, [{ ...row, cells: [at('128', 8), at('256', 9)] }])).toBe(false);
  expect(fallsWithContext(small, [{ ...row, cells: [at('256', 9)] }])).toBe(false);
});
