// What is special about a workload, in the words of the form.
import type { Workload } from '../api/client';
import { type FieldKey, fields } from './fields';
import { describeLengths } from './lengths';

/** Parallel is how a step is shared among GPUs. */
export interface Parallel {
  kind: string;
  gpus: number;
  shard?: number;
  tensor?: number;
  mixed_precision?: string;
  offload?: boolean;
  gradient_as_bucket_view?: boolean;
  static_graph?: boolean;
  stages?: number[];
  schedule?: string;
  microbatches?: number;
}

/** The kinds of parallelism, those that most people use first. */
export const parallelKinds: Record<string, string> = {
  ddp: 'DDP',
  fsdp: 'FSDP2',
  hsdp: 'HSDP',
  zero1: 'ZeRO-1',
  tp: 'tensor parallelism',
  'fsdp+tp': 'FSDP2 with tensor parallelism',
  pipeline: 'pipeline',
};

/** parallelOf is the parallelism of a workload, undefined on one GPU. */
export function parallelOf({ parallel }: Workload): Parallel | undefined {
  return parallel as Parallel | undefined;
}

/** rankOf is the rank of a workload's adapter, 0 without one. */
export function rankOf({ adapter }: Workload): number {
  if (typeof adapter === 'object' && adapter !== null) return Number((adapter as { rank?: number }).rank ?? 16);
  return Number(adapter ?? 0);
}

/** describeKeys says what is not as usual among some keys. */
export function describeKeys(workload: Workload, keys: FieldKey[]): string {
  return keys.flatMap((key) => describeKey(workload, key) ?? []).join(', ');
}

function describeKey(workload: Workload, key: FieldKey): string | undefined {
  const field = fields[key];
  const value = key === 'adapter' ? rankOf(workload) : (workload[key] ?? field.initial);
  if (value === field.initial) return undefined;
  if (key === 'adapter') return `LoRA rank ${String(value)}`;
  if (field.kind === 'choice') return typeof value === 'object' ? 'a custom loop' : (field.options[String(value)] ?? String(value));
  return field.kind === 'switch' ? field.label.toLowerCase() : `${field.label.toLowerCase()} ${String(value)}`;
}

/** describeParallel is a parallelism in a few words. */
export function describeParallel(workload: Workload): string {
  const parallel = parallelOf(workload);
  return parallel ? `${parallelKinds[parallel.kind] ?? parallel.kind}, ${parallel.gpus} GPUs` : '';
}

/** describe is all that is special about a workload, but for some keys. */
export function describe(workload: Workload, without: string[] = []): string {
  const keys = (Object.keys(fields) as FieldKey[]).filter((key) => key !== 'batch' && !without.includes(key));
  return [
    without.includes('batch') ? '' : `batch ${workload.batch ?? fields.batch.initial}`,
    describeKeys(workload, keys),
    without.includes('parallel') ? '' : describeParallel(workload),
    workload.lengths ? describeLengths(workload.lengths) : '',
  ]
    .filter(Boolean)
    .join(', ');
}
