import { expect, test } from 'vitest';
import { commandLine, json } from './exports';

test('the command line asks the same question', () => {
  expect(commandLine({ workload: { model: 'bert' } })).toBe('memorymark analyze bert');
  expect(
    commandLine({
      workload: { model: 'gpt2', gpu: 'rtx-4090', precision: 'amp-bf16', batch: 16, checkpointing: true, optimizer_impl: 'fused' },
      multiple_of: 8,
      reserve_bytes: 2 ** 29,
      price_per_hour: 0.5,
    }),
  ).toBe(
    'memorymark analyze gpt2 --gpu rtx-4090 --precision amp-bf16 --checkpointing --optimizer-impl fused --multiple-of 8 --reserve 536870912B --price 0.5',
  );
  expect(commandLine({ workload: { model: 'bert', config: { num_hidden_layers: 6 } } })).toBe(
    `memorymark analyze bert --config '{"num_hidden_layers":6}'`,
  );
  expect(commandLine({ workload: { model: 'gpt2' }, run_tokens: 1e9 })).toBe('memorymark analyze gpt2 --tokens 1000000000');
  expect(commandLine({ workload: { model: "it's" } })).toBe(`memorymark analyze 'it'\\''s'`);
});

test("a program of one's own stands in the place of the model", () => {
  expect(commandLine({ workload: { gpu: 't4', batch: 64 } }, 'train.py:make')).toBe('memorymark analyze train.py:make --gpu t4 --batch 64');
});

test('a configuration becomes a file', () => {
  expect(commandLine({ workload: { config: { model_type: 'gpt2' }, gpu: 'a10' } })).toBe(
    `cat > config.json <<'END'\n{\n  "model_type": "gpt2"\n}\nEND\nmemorymark analyze ./config.json --gpu a10`,
  );
});

test('JSON leaves out what is usual', () => {
  expect(JSON.parse(json({ workload: { model: 'bert', batch: 16, precision: 'bf16' } }))).toEqual({ model: 'bert', precision: 'bf16' });
});

test('adapters, quantization and parallelism are said as flags', () => {
  const workload = { model: 'bert', adapter: 16, quantize: 'nf4' as const };
  expect(commandLine({ workload: { ...workload, adapter: { kind: 'lora', rank: 8 } } })).toBe(
    'memorymark analyze bert --quantize nf4 --lora 8',
  );
  expect(commandLine({ workload: { model: 'bert', adapter: { kind: 'lora', rank: 8, targets: 'all-linear' } } })).toBe(
    'memorymark analyze bert --lora 8 --lora-targets all-linear',
  );
  expect(commandLine({ workload: { model: 'bert', adapter: { kind: 'lora', rank: 8, dora: true } } })).toBe(
    `memorymark analyze bert --adapter '{"kind":"lora","rank":8,"dora":true}'`,
  );
  expect(commandLine({ workload: { model: 'bert', parallel: { kind: 'fsdp', gpus: 8, mixed_precision: 'bf16' } } })).toBe(
    'memorymark analyze bert --parallel fsdp,gpus=8,mixed_precision=bf16',
  );
  expect(commandLine({ workload: { model: 'llama-3.2-1b', parallel: { kind: 'pipeline', gpus: 3, stages: [8, 4, 4] } } })).toBe(
    'memorymark analyze llama-3.2-1b --parallel pipeline,gpus=3,stages=8/4/4',
  );
});
