import type { Schemas } from '../api/client';

export type State = 'lost' | 'draining' | 'drained' | 'busy' | 'ready';

/** stateOf is what a worker does, as it was known at a moment. A server's own worker stays when it is drained; others leave. */
export function stateOf(worker: Schemas['Worker'], leaseSeconds: number, now: number): State {
  const silent = worker.seen ? (now - Date.parse(worker.seen)) / 1000 : 0;
  const busy = worker.cards?.some((card) => card.job);
  if (silent > leaseSeconds) return 'lost';
  if (worker.draining) return worker.resident && !busy ? 'drained' : 'draining';
  return busy ? 'busy' : 'ready';
}

/** emulation has the place of a card's id at workers that emulate every card. */
export const emulation = 'emulated';

/** code has the place of a card's id at workers that run other people's code. */
export const code = 'emulated-code';

/** ableTo are the workers that take jobs of a card, or of emulation. */
export function ableTo(workers: Schemas['Worker'][], card: string): Schemas['Worker'][] {
  return workers.filter((worker) => !worker.draining && worker.cards?.some(({ id }) => id === card));
}
