import { expect, test } from 'vitest';
import { nameOf, patchOf } from './changes';

test.each([
  ['precision amp-bf16', { precision: 'amp-bf16' }, 'Precision: bf16 autocast'],
  ['checkpointing', { checkpointing: true }, 'Activation checkpointing'],
  ['optimizer_impl fused', { optimizer_impl: 'fused' }, 'Optimizer runs: fused'],
  ['checkpointing + optimizer sgd', { checkpointing: true, optimizer: 'sgd' }, 'Activation checkpointing and Optimizer: SGD'],
  ['something new', { something: 'new' }, 'something new'],
])('%s', (change, patch, name) => {
  expect(patchOf(change)).toEqual(patch);
  expect(nameOf(change)).toBe(name);
});
