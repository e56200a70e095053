// Where most people begin. A preset sets every key that any of them sets, so
// that going from one to another leaves nothing behind.
import type { Card, Workload } from '../api/client';

type Set = Pick<Workload, 'precision' | 'adapter' | 'quantize' | 'optimizer' | 'checkpointing' | 'parallel'>;

export interface Preset {
  name: string;
  about: string;
  set: Set;
}

const nothing: Set = {
  precision: undefined,
  adapter: undefined,
  quantize: undefined,
  optimizer: undefined,
  checkpointing: undefined,
  parallel: undefined,
};

export const presets: Preset[] = [
  {
    name: 'LoRA fine-tuning',
    about: 'Adapters of rank 16 over frozen bf16 weights',
    set: { ...nothing, precision: 'bf16', adapter: 16, checkpointing: true },
  },
  {
    name: 'QLoRA',
    about: 'Adapters of rank 16 over 4-bit weights, with 8-bit paged AdamW',
    set: { ...nothing, precision: 'bf16', adapter: 16, quantize: 'nf4-double', optimizer: 'paged-adamw-8bit', checkpointing: true },
  },
  {
    name: 'Full fine-tuning',
    about: 'All weights, in bf16 autocast with AdamW',
    set: { ...nothing, precision: 'amp-bf16', checkpointing: true },
  },
  {
    name: 'Pre-training on 8 GPUs',
    about: 'All weights, sharded over 8 GPUs by FSDP2 with bf16 parameters',
    set: { ...nothing, checkpointing: true, parallel: { kind: 'fsdp', gpus: 8, mixed_precision: 'bf16' } },
  },
];

/** hasBF16 reports whether a card computes in bf16; one that is not known does. */
export function hasBF16(card: Card | undefined): boolean {
  return !card || Number.parseFloat(card.compute_capability) >= 8;
}

/** setOf is what a preset sets on a card: fp16 autocast where there is no bf16. */
export function setOf({ set }: Preset, card: Card | undefined): Set {
  return set.precision && !hasBF16(card) ? { ...set, precision: 'amp-fp16' } : set;
}

/** presetOf is the preset that a workload is of, if it is as one sets it. */
export function presetOf(workload: Workload, card: Card | undefined): Preset | undefined {
  return presets.find((preset) =>
    Object.entries(setOf(preset, card)).every(([key, value]) => JSON.stringify(workload[key as keyof Workload]) === JSON.stringify(value)),
  );
}

/** unset takes back what a preset sets. */
export const unset = nothing;
