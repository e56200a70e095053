// What is asked of a plan besides the workload, as the address has it.
import type { Schemas } from '../api/client';
import type { Question } from '../workload/address';

/** Terms are a plan's own: how many GPUs, what it may cost and take, and whether adapters will do. */
export interface Terms {
  max_gpus?: number;
  dollars?: number;
  days?: number;
  full?: boolean;
}

export function termsOf(search: string): Terms {
  const from = new URLSearchParams(search);
  const number = (key: string) => (Number(from.get(key)) > 0 ? Number(from.get(key)) : undefined);
  return { max_gpus: number('max_gpus'), dollars: number('dollars'), days: number('days'), full: from.get('full') === 'true' || undefined };
}

/** withTerms is an address with other terms. */
export function withTerms(search: string, terms: Terms): string {
  const to = new URLSearchParams(search);
  for (const key of ['max_gpus', 'dollars', 'days', 'full'] as const) {
    if (terms[key] === undefined) to.delete(key);
    else to.set(key, String(terms[key]));
  }
  return to.toString();
}

// What a plan chooses; it takes none of it from a workload.
const chosen = ['gpu', 'batch', 'accumulate', 'parallel', 'id'];

/** planQuestion is what the server is asked. */
export function planQuestion({ workload, run_tokens, run_samples, global_batch }: Question, { max_gpus, dollars, days, full }: Terms): Schemas['PlanQuestion'] {
  const kept = Object.fromEntries(Object.entries(workload).filter(([key, value]) => value !== undefined && !chosen.includes(key)));
  const within = dollars || days ? { dollars, days } : undefined;
  return { workload: kept, tokens: run_tokens, samples: run_samples, global_batch, max_gpus, full, within };
}
