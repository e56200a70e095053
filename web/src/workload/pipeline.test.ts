import { expect, test } from 'vitest';
import type { Model } from '../api/client';
import { evenStages, layersOf, parseStages } from './pipeline';

const models = [{ id: 'llama-3.2-1b', config: { num_hidden_layers: 16 } }] as unknown as Model[];

test('the layers of a model are those of its configuration', () => {
  expect(layersOf({ model: 'llama-3.2-1b' }, models)).toBe(16);
  expect(layersOf({ model: 'llama-3.2-1b', config: { num_hidden_layers: 4 } }, models)).toBe(4);
  expect(layersOf({ config: { num_hidden_layers: 7 } }, models)).toBe(7);
  expect(layersOf({ config: {} }, models)).toBeUndefined();
});

test('layers are shared evenly, the first GPUs have one more', () => {
  expect(evenStages(16, 4)).toEqual([4, 4, 4, 4]);
  expect(evenStages(16, 3)).toEqual([6, 5, 5]);
  expect(evenStages(80, 64).reduce((sum, n) => sum + n)).toBe(80);
});

test('stages are read as people write them', () => {
  expect(parseStages('8/4/4')).toEqual([8, 4, 4]);
  expect(parseStages(' 8, 4 ')).toEqual([8, 4]);
  for (const unfinished of ['', '8', '8/', '8/0', '8/x', '8//4', '8/-1']) expect(parseStages(unfinished)).toBeUndefined();
});
