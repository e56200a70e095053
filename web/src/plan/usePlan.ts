import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { answer, api, type Schemas } from '../api/client';
import { Problem } from '../api/problem';

export interface PlanState {
  plan?: Schemas['Plan'];
  problem?: Problem;
  /** seconds since it was begun, undefined when none is under way */
  waited?: number;
  begin(): void;
  cancel(): void;
}

/** usePlan makes the plan of a question once it is asked for. One that was made before is there at once. */
export function usePlan(question: Schemas['PlanQuestion']): PlanState {
  const queries = useQueryClient();
  const key = ['plan', question];
  const made = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => answer(api.POST('/v1/plans', { body: question, signal })),
    enabled: false,
    staleTime: Infinity,
    gcTime: 10 * 60_000,
  });
  const waited = useSeconds(made.isFetching);
  return {
    plan: made.data,
    problem: made.error && !made.isFetching ? Problem.of(made.error) : undefined,
    waited: made.isFetching ? waited : undefined,
    begin: () => void made.refetch(),
    cancel: () => void queries.cancelQueries({ queryKey: key }), // the server stops when nobody waits
  };
}

// useSeconds counts while something runs.
function useSeconds(running: boolean): number {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setSeconds((now) => now + 1), 1000);
    return () => {
      clearInterval(timer);
      setSeconds(0);
    };
  }, [running]);
  return seconds;
}
