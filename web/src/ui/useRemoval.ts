import { useCallback, useEffect, useRef, useState } from 'react';
import { Problem } from '../api/problem';

interface Removal {
  id: string;
  name: string;
}

export interface RemovalState {
  /** what is about to be deleted, and can be had back */
  pending?: Removal;
  problem?: Problem;
  remove(id: string, name: string): void;
  undo(): void;
  dismiss(): void;
}

const patience = 7000;

/**
 * useRemoval deletes things after a while in which that can be undone. Another
 * deletion, or leaving the page, carries out the one before.
 */
export function useRemoval(carryOut: (id: string) => Promise<unknown>): RemovalState {
  const [pending, setPending] = useState<Removal>();
  const [problem, setProblem] = useState<Problem>();
  const waiting = useRef<Removal>(undefined);
  const act = useRef(carryOut);
  useEffect(() => {
    act.current = carryOut;
  });

  const finish = useCallback(() => {
    const due = waiting.current;
    waiting.current = undefined;
    if (!due) return;
    act
      .current(due.id)
      .catch((error: unknown) => setProblem(Problem.of(error)))
      .finally(() => setPending((now) => (now?.id === due.id ? undefined : now)));
  }, []);

  useEffect(() => {
    if (!pending) return;
    const timer = setTimeout(finish, patience);
    return () => clearTimeout(timer);
  }, [pending, finish]);

  useEffect(() => {
    window.addEventListener('pagehide', finish);
    return () => {
      window.removeEventListener('pagehide', finish);
      finish();
    };
  }, [finish]);

  return {
    pending,
    problem,
    remove: (id, name) => {
      finish();
      waiting.current = { id, name };
      setPending({ id, name });
    },
    undo: () => {
      waiting.current = undefined;
      setPending(undefined);
    },
    dismiss: () => setProblem(undefined),
  };
}
