import { useEffect, useState } from 'react';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { ended, useWatch, type Watched } from '../api/watch';
import type { Question } from '../workload/address';

/** Engine is how an analysis is answered. */
export type Engine = 'predicted' | 'emulated' | 'measured';

export interface RunState {
  id?: string;
  watched: Watched;
  busy: boolean;
  problem?: Problem;
  begin(question: Question, engine: Engine): Promise<void>;
  dismiss(): void;
  close(): void;
}

/** useRun begins analyses and follows the last one, also after the page was left or loaded again while it ran. */
export function useRun(): RunState {
  const [id, setID] = useState(running.get);
  const [problem, setProblem] = useState<Problem>();
  const watched = useWatch(id);
  const over = ended(watched.analysis) || watched.gone;
  useEffect(() => {
    if (over) running.set(undefined);
  }, [over]);
  const follow = (next: string | undefined) => {
    running.set(next);
    setID(next);
  };
  return {
    id: watched.gone ? undefined : id,
    watched,
    busy: id !== undefined && !over,
    problem,
    begin: async (question, engine) => {
      setProblem(undefined);
      try {
        follow((await answer(api.POST('/v1/analyses', { body: { ...question, engine, changes: true } }))).id);
      } catch (error) {
        setProblem(Problem.of(error));
      }
    },
    dismiss: () => setProblem(undefined),
    close: () => follow(undefined),
  };
}

const key = 'memorymark.running';

/** running is what this tab waits for. Where the browser keeps nothing, the history still has it. */
const running = {
  get: (): string | undefined => {
    try {
      return sessionStorage.getItem(key) ?? undefined;
    } catch {
      return undefined;
    }
  },
  set: (id: string | undefined) => {
    try {
      if (id) sessionStorage.setItem(key, id);
      else sessionStorage.removeItem(key);
    } catch {
      // It is followed until the page is left, then.
    }
  },
};
