// The ways to train that most people choose from. A method sets every key that any of them sets, so that going
// from one to another leaves nothing behind.
import type { Card, Workload } from '../api/client';

type Set = Pick<Workload, 'precision' | 'adapter' | 'quantize' | 'optimizer' | 'checkpointing'>;

export type Method = 'Full' | 'LoRA' | 'QLoRA';

// All linear layers, as PEFT's documentation advises for QLoRA, and since PEFT knows no default for many models.
const lora = { kind: 'lora', rank: 16, targets: 'all-linear' };

export const methods: Record<Method, { about: string; set: Set }> = {
  Full: {
    about: 'All weights, in bf16 autocast with AdamW',
    set: { precision: 'amp-bf16', adapter: undefined, quantize: undefined, optimizer: undefined, checkpointing: true },
  },
  LoRA: {
    about: 'Adapters of rank 16 over frozen bf16 weights',
    set: { precision: 'bf16', adapter: lora, quantize: undefined, optimizer: undefined, checkpointing: true },
  },
  QLoRA: {
    about: 'Adapters of rank 16 over 4-bit weights, with paged 8-bit AdamW',
    set: { precision: 'bf16', adapter: lora, quantize: 'nf4-double', optimizer: 'paged-adamw-8bit', checkpointing: true },
  },
};

/** newer are the precisions that cards before Ampere do not have in hardware. */
export const newer = ['tf32', 'amp-bf16', 'bf16'];

/** hasBF16 reports whether a card computes in bf16; one that is not known does. */
export function hasBF16(card: Card | undefined): boolean {
  return !card || Number.parseFloat(card.compute_capability) >= 8;
}

/** setOf is what a method sets on a card: fp16 autocast where there is no bf16. */
export function setOf(method: Method, card: Card | undefined): Set {
  const { set } = methods[method];
  return hasBF16(card) ? set : { ...set, precision: 'amp-fp16' };
}

/** methodOf is how a workload trains, whatever else it sets. */
export function methodOf({ adapter, quantize }: Workload): Method {
  if (!adapter) return 'Full';
  return quantize && quantize !== 'none' ? 'QLoRA' : 'LoRA';
}

/** methodName is a method in the middle of a sentence. */
export function methodName(workload: Workload): string {
  const method = methodOf(workload);
  return method === 'Full' ? 'full fine-tuning' : method;
}
