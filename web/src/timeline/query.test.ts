import { expect, test } from 'vitest';
import { matcher, parseQuery, type Query } from './query';
import { timelineOf } from './testing';

const MiB = 1024 ** 2;

test.each<[string, Query | null]>([
  ['', null],
  ['  ', null],
  ['20MiB', { kind: 'size', min: Math.ceil(19.8 * MiB), max: Math.floor(20.2 * MiB) }],
  ['>100 MB', { kind: 'size', min: 100 * MiB, max: Infinity }],
  ['< 1k', { kind: 'size', min: 0, max: 1024 }],
  ['>=512', { kind: 'size', min: 512, max: Infinity }],
  ['1MiB..2.5MiB', { kind: 'size', min: MiB, max: 2.5 * MiB }],
  ['0x7F00aB', { kind: 'address', address: '0x7f00ab' }],
  ['#12', { kind: 'allocation', id: 12 }],
  ['modeling_gpt2.py', { kind: 'frame', text: 'modeling_gpt2.py' }],
  ['linear 3', { kind: 'frame', text: 'linear 3' }],
])('%s', (text, query) => {
  expect(parseQuery(text)).toEqual(query);
});

const t = timelineOf(2, [
  { size: MiB, from: 0, to: 2, frames: ['model.py:3 forward', 'train.py:9 main'] },
  { size: 2 * MiB, from: 0, to: 2, group: 1 },
  { size: 3 * MiB, from: 0, to: 2, frames: ['optim.py:7 step'] },
]);

test.each([
  ['1MiB..2MiB', [0, 1]],
  ['TRAIN.py', [0]],
  ['group 1', [1]],
  ['#2', [2]],
  ['0x10', [1]],
  ['nothing of it', []],
])('%s finds', (text, shapes) => {
  const query = parseQuery(text);
  const found = matcher(t, query!, new Set([1]));
  expect([0, 1, 2].filter(found)).toEqual(shapes);
});
