// The batches that an answer is about, from what one runs today to the most that
// trains, with what was found of each.
import type { Answer, Schemas } from '../api/client';

export type Found = Schemas['Result'];

export interface Batch {
  size: number;
  name: 'today' | 'worth using' | 'largest';
  color: string;
  /** absent if the answer did not look at it */
  found?: Found;
}

export function batchesOf(answer: Answer): Batch[] {
  const named: [number | undefined, Batch['name'], string][] = [
    [answer.current_batch_size, 'today', 'var(--bad)'],
    [answer.recommended_batch_size, 'worth using', 'var(--warn)'],
    [answer.optimal_batch_size, 'largest', 'var(--accent)'],
  ];
  return named.flatMap(([size, name, color]) =>
    size ? [{ size, name, color, found: answer.results?.find((result) => result.batch_size === size) }] : [],
  );
}
