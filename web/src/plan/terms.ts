// The settings of a plan in addition to the workload, as the address has them.
import type { Schemas } from '../api/client';
import type { Question } from '../workload/address';

/** Terms are a plan's own: how many GPUs, what it may cost and take, and whether adapters will do. */
export interface Terms {
  max_gpus?: number;
  dollars?: number;
  days?: number;
  full?: boolean;
  /** ids of the cards one has */
  gpus?: string[];
  /** options side by side */
  pins?: string[];
  /** what was planned: its answer is shown again when the page is loaded */
  planned?: string;
}

export const termKinds = { max_gpus: 'number', dollars: 'number', days: 'number', full: 'flag', gpus: 'text', pins: 'text', planned: 'text' } as const;
const termKeys = Object.keys(termKinds) as (keyof Terms)[];

export function termsOf(search: string): Terms {
  const from = new URLSearchParams(search);
  const number = (key: string) => (Number(from.get(key)) > 0 ? Number(from.get(key)) : undefined);
  const list = (key: string) => from.get(key)?.split(',').filter(Boolean);
  return {
    max_gpus: number('max_gpus'),
    dollars: number('dollars'),
    days: number('days'),
    full: from.get('full') === 'true' || undefined,
    gpus: list('gpus'),
    pins: list('pins'),
    planned: from.get('planned') ?? undefined,
  };
}

/** withTerms is an address with other terms. */
export function withTerms(search: string, terms: Terms): string {
  const to = new URLSearchParams(search);
  for (const key of termKeys) {
    if (terms[key] === undefined || String(terms[key]) === '') to.delete(key);
    else to.set(key, String(terms[key]));
  }
  return to.toString().replaceAll('%2C', ',');
}

// What a plan chooses; it takes none of it from a workload.
const chosen = ['gpu', 'batch', 'accumulate', 'parallel', 'id'];

/** planQuestion is what the server is asked. */
export function planQuestion({ workload, run_tokens, run_samples, global_batch }: Question, { max_gpus, dollars, days, full, gpus }: Terms): Schemas['PlanQuestion'] {
  const kept = Object.fromEntries(Object.entries(workload).filter(([key, value]) => value !== undefined && !chosen.includes(key)));
  const within = dollars || days ? { dollars, days } : undefined;
  return { workload: kept, tokens: run_tokens, samples: run_samples, global_batch, max_gpus, full, within, gpus: gpus?.length ? gpus : undefined };
}

/** nameOf is a short name of a question: what was planned, in an address. */
export function nameOf(question: Schemas['PlanQuestion']): string {
  let hash = 5381;
  for (const letter of JSON.stringify(question)) hash = (hash * 33 + letter.charCodeAt(0)) >>> 0;
  return hash.toString(36);
}
