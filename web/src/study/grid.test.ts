import { expect, test } from 'vitest';
import { addressOfGrid, commandOf, gridOf } from './grid';

test('a grid survives the address, and the usual one needs none', () => {
  expect(addressOfGrid(gridOf(''))).toBe('');
  const grid = gridOf('sizes=small,2.7B,huge&contexts=1024&batch=8&gpu=h200');
  expect(grid).toMatchObject({ sizes: ['small', '2.7B'], contexts: ['1024'], parts: ['forward', 'training'], batch: 8, gpu: 'h200' });
  expect(gridOf(addressOfGrid(grid))).toEqual(grid);
});

test('the command line does the same', () => {
  expect(commandOf(gridOf('sizes=2.7B&contexts=128,512&precisions=fp32&gpu=h200'))).toBe(
    'memorymark study sweep --model-size 2.7B --context-length 128,512 --profile-type forward,training --precision fp32 --batch-size 4 --gpu h200',
  );
});
