// The batches that an answer is about, from one's own to the most that
// trains, with what was found of each.
import type { Answer, Schemas } from '../api/client';

export type Found = Schemas['Result'];

export interface Batch {
  size: number;
  name: 'yours' | 'recommended' | 'largest';
  /** absent if the answer did not look at it */
  found?: Found;
}

export function batchesOf(answer: Answer): Batch[] {
  const named: [number | undefined, Batch['name']][] = [
    [answer.current_batch_size, 'yours'],
    [answer.recommended_batch_size, 'recommended'],
    [answer.optimal_batch_size, 'largest'],
  ];
  return named.flatMap(([size, name]) => (size ? [{ size, name, found: answer.results?.find((result) => result.batch_size === size) }] : []));
}

/** yoursOf is what was found of the batch that was asked about. */
export function yoursOf({ results, current_batch_size: yours }: Answer) {
  return results?.find((result) => result.batch_size === yours);
}
