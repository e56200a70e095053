import { expect, test } from 'vitest';
import { addressOf, othersIn, type Question, questionOf, timelineOf, unreadableIn, without, workloadIn } from './address';

test('without a question there is one to look at', () => {
  expect(questionOf('')).toEqual({ workload: { model: 'bert' } });
});

test.each<[string, Question]>([
  ['a plain one', { workload: { model: 'gpt2', gpu: 'h200', precision: 'amp-bf16', batch: 64, checkpointing: true } }],
  ['a configuration', { workload: { config: { model_type: 'gpt2', n_layer: 4, architectures: ['GPT2LMHeadModel'] }, sequence: 512 } }],
  ['a model with keys replaced', { workload: { model: 'bert', config: { num_hidden_layers: 6 } } }],
  ['all beside the workload', { workload: { model: 'vit', limit_gib: 7.5 }, multiple_of: 8, price_per_hour: 1.2, hours_per_year: 0 }],
])('%s survives the address', (_, question) => {
  expect(questionOf(addressOf(question))).toEqual(question);
});

test('what is usual is left out', () => {
  expect(addressOf({ workload: { model: 'bert', batch: 16, precision: 'fp32', checkpointing: false } })).toBe('model=bert');
});

test.each([
  ['batch=abc', 'batch', 'a number is expected'],
  ['adapter={xx', 'adapter', 'it is incomplete or damaged'],
  ['lora=many', 'lora', 'a rank is expected'],
  ['checkpointing=yes', 'checkpointing', 'true or false is expected'],
  ['price_per_hour=-1', 'price_per_hour', 'a number from 0 on is expected'],
  ['tokens=many', 'tokens', 'an amount is expected, such as 1B, 300M or 1e9'],
  ['days=soon', 'days', 'a number from 0 on is expected'],
  ['full=yes', 'full', 'true or false is expected'],
  ['bacth=64', 'bacth', 'there is no such setting'],
  ['parallel=8', 'parallel', 'a kind of parallelism is expected, such as fsdp'],
  ['config=gpt2', 'config', 'values are expected, such as config.name=1'],
])('%s is said to be unreadable', (search, key, wanted) => {
  expect(unreadableIn(`model=bert&${search}`, { tab: 'text', days: 'number', full: 'flag' })).toMatchObject([{ key, wanted }]);
  expect(unreadableIn('model=bert&batch=8&tab=events&utm_source=mail&price_per_hour=', { tab: 'text' })).toEqual([]);
});

test.each([
  ['tokens=1B', { run_tokens: 1e9 }],
  ['run_tokens=300M', { run_tokens: 3e8 }],
  ['run_tokens=1e9', { run_tokens: 1e9 }],
  ['samples=20k', { run_samples: 20_000 }],
])('%s is an amount', (search, read) => {
  expect(unreadableIn(search, {})).toEqual([]);
  expect(questionOf(search)).toEqual({ workload: { model: 'bert' }, ...read });
});

test('links of before, with JSON in them, are read', () => {
  const old = new URLSearchParams({ model: 'bert', adapter: '{"kind":"lora","rank":8}', parallel: '{"kind":"fsdp","gpus":8}', config: '{"a":[1]}' });
  expect(questionOf(old.toString()).workload).toEqual({ model: 'bert', adapter: { kind: 'lora', rank: 8 }, parallel: { kind: 'fsdp', gpus: 8 }, config: { a: [1] } });
  expect(questionOf('model=bert&adapter=16').workload.adapter).toBe(16);
});

test.each<[string, unknown]>([
  ['lists', [1, 'two', 3.5]],
  ['short lists', { one: ['x'], none: [] }],
  ['numbers as text', { a: '16', b: '1e3', c: 'true', d: 'null', e: '' }],
  ['commas and apostrophes', { a: 'x, y', b: "'z", c: ['p,q', 'r'] }],
  ['lists of objects', { a: [{ b: 1 }, { b: [2, 3] }] }],
  ['nothing', { a: null, b: false }],
])('%s in a configuration survive the address', (_, value) => {
  const workload = { config: { model_type: 'x', value } };
  expect(questionOf(addressOf({ workload })).workload).toEqual(workload);
});

test('values that the server refuses reach it, so that it can say why', () => {
  expect(questionOf('model=nope&batch=-3&precision=fp7').workload).toEqual({ model: 'nope', batch: -3, precision: 'fp7' });
});

test('a timeline is of the same workload at a batch', () => {
  expect(timelineOf({ model: 'bert', gpu: 'a10', batch: 8 })).toBe('/timeline?model=bert&gpu=a10&batch=8');
  expect(timelineOf({ model: 'bert', gpu: 'a10', batch: 8 }, 272)).toBe('/timeline?model=bert&gpu=a10&batch=272');
});

test('an address may be about something else than a workload', () => {
  expect(workloadIn('model=gpt2&tab=events')).toEqual({ model: 'gpt2' });
  expect(workloadIn('snapshot=abc&tab=events')).toBeNull();
});

test('keys can be left open', () => {
  expect(without({ workload: { model: 'bert', gpu: 'a10', batch: 4 }, multiple_of: 8 }, 'gpu', 'batch')).toEqual({ workload: { model: 'bert' }, multiple_of: 8 });
});

test('adapters, parallelism and lengths travel too', () => {
  const workload = {
    model: 'llama-3.1-8b',
    adapter: { kind: 'lora', rank: 8, targets: 'all-linear' },
    parallel: { kind: 'fsdp', gpus: 8, mixed_precision: 'bf16' },
    lengths: { 100: 5, 900: 1 },
    packing: true,
  };
  expect(questionOf(addressOf({ workload })).workload).toEqual(workload);
  expect(addressOf({ workload: { model: 'bert', adapter: 16, packing: false } })).toBe('model=bert&lora=16');
  expect(addressOf({ workload: { ...workload, lengths: undefined } })).toBe(
    'model=llama-3.1-8b&lora=8&lora.targets=all-linear&parallel=fsdp&parallel.gpus=8&parallel.mixed_precision=bf16&packing=true',
  );
  const versions = { torch: '2.10', transformers: '5.17' };
  expect(addressOf({ workload: { model: 'bert', versions } })).toBe('model=bert&versions.torch=2.10&versions.transformers=5.17');
  expect(questionOf('versions.torch=2.10&versions.transformers=5.17').workload.versions).toEqual(versions);
});

test('a price may be 0, and is never negative', () => {
  expect(questionOf('model=bert&price_per_hour=0').price_per_hour).toBe(0);
  expect(questionOf('model=bert&price_per_hour=-1').price_per_hour).toBeUndefined();
});

test('what is a page\'s own stays', () => {
  expect(othersIn('model=gpt2&batch=4&max_gpus=8&config.x=1')).toBe('max_gpus=8');
});
