import { expect, test } from 'vitest';
import type { Answer, Model } from '../api/client';
import { commandLine, json, python, trainerArguments } from './exports';

const answer = { optimal_batch_size: 266, recommended_batch_size: 92 } as Answer;
const bert = {
  id: 'bert',
  huggingface_id: 'google-bert/bert-base-uncased',
  config: { architectures: ['BertForSequenceClassification'] },
} as unknown as Model;

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

test('a configuration becomes a file', () => {
  expect(commandLine({ workload: { config: { model_type: 'gpt2' }, gpu: 'a10' } })).toBe(
    `cat > config.json <<'END'\n{\n  "model_type": "gpt2"\n}\nEND\nmemorymark analyze ./config.json --gpu a10`,
  );
});

test('JSON leaves out what is usual', () => {
  expect(JSON.parse(json({ workload: { model: 'bert', batch: 16, precision: 'bf16' } }))).toEqual({ model: 'bert', precision: 'bf16' });
});

test('Python trains with the batch worth using', () => {
  expect(python({ workload: { model: 'bert' } }, answer, bert)).toBe(`import torch
from transformers import BertForSequenceClassification

model = BertForSequenceClassification.from_pretrained("google-bert/bert-base-uncased").cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
loader = torch.utils.data.DataLoader(dataset, batch_size=92, drop_last=True)

for step, batch in enumerate(loader):
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()`);
});

test('Python knows autocast, scaling, clipping and accumulation', () => {
  const code = python({ workload: { model: 'bert', precision: 'amp-fp16', clip_grad_norm: true, accumulate: 4, checkpointing: true } }, answer, bert);
  expect(code).toContain('scaler = torch.amp.GradScaler()');
  expect(code).toContain('model.gradient_checkpointing_enable()');
  expect(code.split('\n').slice(-8)).toEqual([
    '        loss = model(**batch).loss / 4',
    '    scaler.scale(loss).backward()',
    '    if (step + 1) % 4 == 0:',
    '        scaler.unscale_(optimizer)',
    '        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)',
    '        scaler.step(optimizer)',
    '        scaler.update()',
    '        optimizer.zero_grad()',
  ]);
});

test('Muon has an optimizer beside it', () => {
  const question = { workload: { model: 'bert', optimizer: 'muon' as const, optimizer_impl: 'fused' as const } };
  const code = python(question, answer, bert);
  expect(code).toContain('optimizers = [torch.optim.Muon(matrices, lr=1e-3)]\nif others:\n    optimizers.append(torch.optim.AdamW(others, lr=5e-5, fused=True))');
  expect(code.split('\n').slice(-2)).toEqual(['    for optimizer in optimizers: optimizer.step()', '    for optimizer in optimizers: optimizer.zero_grad()']);
  expect(trainerArguments(question, answer)).toContain('use the Python loop');
});

test('trainer arguments follow the plan for a global batch', () => {
  const planned = { ...answer, accumulation: { global_batch: 1000, micro_batch: 250, steps: 4 } };
  const text = trainerArguments({ workload: { model: 'bert', precision: 'amp-bf16', optimizer: 'sgd-momentum' } }, planned);
  expect(text).toContain('per_device_train_batch_size=250,\n    gradient_accumulation_steps=4,\n    bf16=True,');
  expect(text).toContain('optim="sgd",\n    optim_args="momentum=0.9",');
});

test('adapters, quantization and parallelism are said as flags and as code', () => {
  const workload = { model: 'bert', adapter: 16, quantize: 'nf4' as const };
  expect(commandLine({ workload: { ...workload, adapter: { kind: 'lora', rank: 8 } } })).toBe(
    `memorymark analyze bert --quantize nf4 --adapter '{"kind":"lora","rank":8}'`,
  );
  expect(commandLine({ workload: { model: 'bert', parallel: { kind: 'fsdp', gpus: 8, mixed_precision: 'bf16' } } })).toBe(
    'memorymark analyze bert --parallel fsdp,gpus=8,mixed_precision=bf16',
  );
  expect(commandLine({ workload: { model: 'llama-3.2-1b', parallel: { kind: 'pipeline', gpus: 3, stages: [8, 4, 4] } } })).toBe(
    'memorymark analyze llama-3.2-1b --parallel pipeline,gpus=3,stages=8/4/4',
  );
  const code = python({ workload }, answer, bert);
  expect(code).toContain('quantization_config=quantization');
  expect(code).toContain('model = get_peft_model(model, LoraConfig(r=16))');
});
