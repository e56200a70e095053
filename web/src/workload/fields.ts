// The keys of a workload as fields of a form. fields.test.ts holds values,
// defaults and explanations against the OpenAPI document.
import type { Workload } from '../api/client';

type Key = Exclude<keyof Workload, 'model' | 'config' | 'gpu' | 'id' | 'limit_gib'>;

interface Described {
  label: string;
  /** what it means, as the API explains it */
  help: string;
}

export interface ChoiceField extends Described {
  kind: 'choice';
  initial: string;
  options: Record<string, string>;
}

export interface NumberField extends Described {
  kind: 'number';
  initial: number;
  unit: string;
}

export interface SwitchField extends Described {
  kind: 'switch';
  initial: false;
}

export type Field = ChoiceField | NumberField | SwitchField;

const choice = <K extends Key>(label: string, initial: string, help: string, options: Record<NonNullable<Workload[K]> & string, string>): ChoiceField => ({
  kind: 'choice',
  label,
  initial,
  help,
  options,
});

const number = (label: string, initial: number, unit: string, help: string): NumberField => ({ kind: 'number', label, initial, unit, help });
const toggle = (label: string, help: string): SwitchField => ({ kind: 'switch', label, initial: false, help });

export const fields: Record<Key, Field> = {
  batch: number('Batch today', 16, 'samples', 'Samples in a step.'),
  sequence: number('Sequence', 128, 'tokens', 'Tokens in a sample.'),
  image: number('Image side', 224, 'pixels', 'Pixels of a side of an image.'),
  precision: choice<'precision'>('Precision', 'fp32', 'What a step computes in.', {
    fp32: 'fp32',
    tf32: 'tf32',
    'amp-bf16': 'bf16 autocast',
    'amp-fp16': 'fp16 autocast',
    bf16: 'bf16, weights too',
  }),
  optimizer: choice<'optimizer'>('Optimizer', 'adamw', 'What updates the parameters.', {
    adamw: 'AdamW',
    adam: 'Adam',
    sgd: 'SGD',
    'sgd-momentum': 'SGD with momentum',
    none: 'none',
  }),
  checkpointing: toggle('Activation checkpointing', 'Compute activations again in backward instead of keeping them.'),
  optimizer_impl: choice<'optimizer_impl'>('Optimizer runs', 'foreach', 'How the optimizer computes.', {
    foreach: 'foreach',
    fused: 'fused',
    loop: 'one by one',
  }),
  accumulate: number('Accumulate', 1, 'passes', 'Forward and backward passes before each update.'),
  attention: choice<'attention'>('Attention', 'sdpa', 'How attention is computed.', { sdpa: 'sdpa', eager: 'eager' }),
  attention_mask: choice<'attention_mask'>('Attention mask', 'none', 'The mask in the batch.', {
    none: 'none',
    ones: 'all ones',
    padded: 'padded',
  }),
  phase: choice<'phase'>('Runs', 'train', 'How much of a step runs.', {
    train: 'whole steps',
    backward: 'forward and backward',
    forward: 'forward',
    infer: 'forward without gradients',
  }),
  loss: choice<'loss'>('Loss', 'labels', 'What backward starts from: the model\'s own loss, or the mean of its logits.', {
    labels: 'of labels',
    mean: 'mean of logits',
  }),
  mode: choice<'mode'>('Mode', 'train', 'The mode of the model.', { train: 'train', eval: 'eval' }),
  clip_grad_norm: toggle('Clip gradients', 'Clip gradients by their norm.'),
  expandable_segments: toggle('Expandable segments', 'With PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.'),
};

export type FieldKey = Key;

/** What is asked most; the rest is behind "more". */
export const first: Key[] = ['precision', 'optimizer', 'batch', 'sequence', 'image', 'checkpointing'];
export const more: Key[] = [
  'optimizer_impl',
  'accumulate',
  'attention',
  'attention_mask',
  'phase',
  'loss',
  'mode',
  'clip_grad_norm',
  'expandable_segments',
];
