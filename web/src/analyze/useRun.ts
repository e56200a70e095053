import { useState } from 'react';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { ended, useWatch, type Watched } from '../api/watch';
import type { Question } from '../workload/address';

/** Engine is how an analysis is answered. */
export type Engine = 'predicted' | 'emulated' | 'measured';

interface RunState {
  id?: string;
  watched: Watched;
  busy: boolean;
  problem?: Problem;
  begin(question: Question, engine: Engine): Promise<void>;
  dismiss(): void;
  close(): void;
}

/** useRun begins analyses and follows the last one. */
export function useRun(): RunState {
  const [id, setID] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const watched = useWatch(id);
  return {
    id,
    watched,
    busy: id !== undefined && !ended(watched.analysis),
    problem,
    begin: async (question, engine) => {
      setProblem(undefined);
      try {
        setID((await answer(api.POST('/v1/analyses', { body: { ...question, engine, changes: true } }))).id);
      } catch (error) {
        setProblem(Problem.of(error));
      }
    },
    dismiss: () => setProblem(undefined),
    close: () => setID(undefined),
  };
}
