import { useQueries } from '@tanstack/react-query';
import { Problem } from '../api/problem';

export interface Each<Part> {
  /** the answers in the order of the questions, undefined while they are on their way */
  answers: (Part | undefined)[];
  /** those that have come */
  parts: Part[];
  /** how many answers are still on their way */
  missing: number;
  problem?: Problem;
}

/**
 * useEach asks one question for each of many things, so that answers appear as
 * they come: the server computes as many at a time as it has cores.
 */
export function useEach<Thing, Part>(things: Thing[], key: (thing: Thing) => unknown[], ask: (thing: Thing, signal: AbortSignal) => Promise<Part>): Each<Part> {
  return useQueries({
    queries: things.map((thing) => ({
      queryKey: key(thing),
      queryFn: ({ signal }: { signal: AbortSignal }) => ask(thing, signal),
      staleTime: Infinity,
    })),
    combine: (results) => {
      const failed = results.find((result) => result.error);
      return {
        answers: results.map((result) => result.data),
        parts: results.flatMap((result) => (result.data === undefined ? [] : [result.data])),
        missing: results.filter((result) => result.isPending).length,
        problem: failed ? Problem.of(failed.error) : undefined,
      };
    },
  });
}
