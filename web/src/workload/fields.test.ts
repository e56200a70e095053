import { expect, test } from 'vitest';
import keys from '../api/keys.json';
import { adapters, fields, first, more, training } from './fields';

test('every key of a workload has a field, or a place of its own', () => {
  const elsewhere = ['model', 'config', 'gpu', 'id', 'limit_gib', 'lengths', 'packing', 'parallel', 'versions'];
  expect([...Object.keys(fields), ...elsewhere].toSorted()).toEqual(Object.keys(keys).toSorted());
  expect([...first, ...adapters, ...training, ...more].toSorted()).toEqual(Object.keys(fields).toSorted());
});

test('fields are as the API has the keys', () => {
  expect(fields.batch).toEqual({ kind: 'number', label: 'Your batch', help: 'Samples per step.', initial: 16, unit: 'samples' });
  expect(fields.checkpointing).toMatchObject({ kind: 'switch', initial: false });
  expect(fields.optimizer).toMatchObject({ kind: 'choice', initial: 'adamw', options: { 'sgd-momentum': 'SGD with momentum' } });
});
