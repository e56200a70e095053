import { expect, test } from 'vitest';
import { addressOf, othersIn, type Question, questionOf, timelineOf, without, workloadIn } from './address';

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

test('what makes no sense as a number or JSON is left alone', () => {
  expect(questionOf('model=bert&batch=many&config=%7B&price_per_hour=&unknown=1')).toEqual({ workload: { model: 'bert' } });
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
  expect(addressOf({ workload: { model: 'bert', adapter: 16, packing: false } })).toBe('model=bert&adapter=16');
});

test('a price may be 0, and is never negative', () => {
  expect(questionOf('model=bert&price_per_hour=0').price_per_hour).toBe(0);
  expect(questionOf('model=bert&price_per_hour=-1').price_per_hour).toBeUndefined();
});

test('what is a page\'s own stays', () => {
  expect(othersIn('model=gpt2&batch=4&max_gpus=8&config={}')).toBe('max_gpus=8');
});
