import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../api/client';
import { Problem } from '../api/problem';
import { events } from '../api/stream';

export type PlanProgress = Schemas['PlanProgress'];

export interface PlanState {
  plan?: Schemas['Plan'];
  problem?: Problem;
  /** how much of it is made, undefined when none is under way */
  progress?: PlanProgress;
  begin(): void;
  cancel(): void;
}

const begun: PlanProgress = { done: 0, of: 0 };

/** usePlan makes the plan of a question once it is asked for, or if it was planned when the address was made. */
export function usePlan(question: Schemas['PlanQuestion'], planned: boolean): PlanState {
  const queries = useQueryClient();
  const [progress, setProgress] = useState(begun);
  const key = ['plan', question];
  const made = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => {
      setProgress(begun);
      return makePlan(question, signal, setProgress);
    },
    enabled: planned,
    staleTime: Infinity,
    gcTime: 10 * 60_000,
  });
  return {
    plan: made.data,
    problem: made.error && !made.isFetching ? Problem.of(made.error) : undefined,
    progress: made.isFetching ? progress : undefined,
    begin: () => void made.refetch(),
    cancel: () => void queries.cancelQueries({ queryKey: key }), // the server stops when no one waits
  };
}

/** makePlan asks for a plan and tells how much of it is made. */
async function makePlan(question: Schemas['PlanQuestion'], signal: AbortSignal, tell: (progress: PlanProgress) => void): Promise<Schemas['Plan']> {
  const stream = await answer(api.POST('/v1/plans/events', { body: question, signal, parseAs: 'stream' }));
  for await (const { name, data } of events(stream as ReadableStream<Uint8Array>)) {
    if (name === 'progress') tell(data as PlanProgress);
    if (name === 'plan') return data as Schemas['Plan'];
    if (name === 'problem') throw Problem.from((data as Schemas['ErrorModel']).status ?? 500, data as Schemas['ErrorModel']);
  }
  throw Problem.lost();
}
