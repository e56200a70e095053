import { expect, test } from 'vitest';
import type { Card, Model } from '../api/client';
import { asAsked, cardOf, samplesOf, titleOf } from './subject';

const bert = { id: 'bert', name: 'BERT base', type: 'nlp', config: { model_type: 'bert', num_hidden_layers: 12 } } as unknown as Model;
const vit = { id: 'vit', name: 'ViT base', type: 'vision', huggingface_id: 'google/vit-base-patch16-224', same: ['me/vit'], config: { model_type: 'vit' } } as unknown as Model;
const models = [bert, vit];

test('a workload has a name', () => {
  expect(titleOf({ model: 'bert' }, models)).toBe('BERT base');
  expect(titleOf({ model: 'bert', config: { num_hidden_layers: 6 } }, models)).toBe('BERT base, changed');
  expect(titleOf({ config: { model_type: 'gpt2' } }, models)).toBe('config.json (gpt2)');
  expect(titleOf({ config: { _name_or_path: 'me/mine' } }, models)).toBe('me/mine');
});

test('a model has the names that it has on the Hub, too', () => {
  for (const model of ['ViT', 'google/vit-base-patch16-224', 'VIT-base-patch16-224', 'me/vit']) expect(titleOf({ model }, models)).toBe('ViT base');
  expect(titleOf({ model: 'google' }, models)).toBe('google');
});

test('samples are told apart, of configurations too', () => {
  expect(samplesOf({ model: 'vit' }, models)).toBe('vision');
  expect(samplesOf({ config: { model_type: 'vit' } }, models)).toBe('vision');
  expect(samplesOf({ config: { model_type: 'new' } }, models)).toBe('nlp');
});

test('a configuration that the server filled in is left out again', () => {
  expect(asAsked({ model: 'bert', config: { ...bert.config }, batch: 8 }, models)).toEqual({ model: 'bert', batch: 8 });
  expect(asAsked({ model: 'bert', config: { ...bert.config, num_hidden_layers: 6 } }, models).config).toEqual({ num_hidden_layers: 6 });
});

test('a card is found by its id, its alias or the default', () => {
  const cards = { default: 'a10', gpus: [{ id: 'a10' }, { id: 't4', aliases: ['tesla-t4'] }] as Card[] };
  expect(cardOf({}, cards)?.id).toBe('a10');
  expect(cardOf({ gpu: 'Tesla-T4' }, cards)?.id).toBe('t4');
  expect(cardOf({ gpu: 'none' }, cards)).toBeUndefined();
});
