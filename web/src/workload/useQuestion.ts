import { useCallback, useEffect, useMemo, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import type { Workload } from '../api/client';
import { addressOf, othersIn, type Question, questionOf, workloadIn } from './address';
import { carry } from './carried';

export interface QuestionState {
  question: Question;
  /** no question was asked: the page shows what an answer looks like */
  isExample: boolean;
  /** question once the inputs have been still for a moment; what is asked of the server */
  settled: Question;
  /** changes keys of the workload; undefined takes the default */
  change(patch: Partial<Workload>, step?: Step): void;
  /** takes another workload in the place of this one */
  replace(workload: Workload): void;
  /** changes what is asked in addition to the workload */
  ask(patch: Partial<Omit<Question, 'workload'>>): void;
}

/** A deliberate step can be taken back with the browser's button; typing is not one. */
type Step = 'step' | 'typing';

/** useQuestion is the question that the address bar holds. */
export function useQuestion(): QuestionState {
  const search = useSearch();
  const [path, navigate] = useLocation();
  const question = useMemo(() => questionOf(search), [search]);
  const others = useMemo(() => othersIn(search), [search]);
  const isExample = !workloadIn(search);
  useEffect(() => {
    if (!isExample) carry(question);
  }, [question, isExample]);
  const go = useCallback(
    (next: Question, step: Step) => navigate(`${path}?${[addressOf(next), others].filter(Boolean).join('&')}`, { replace: step === 'typing' }),
    [navigate, path, others],
  );
  const change = useCallback(
    (patch: Partial<Workload>, step: Step = 'step') => go({ ...question, workload: { ...question.workload, ...patch } }, step),
    [go, question],
  );
  const replace = useCallback((workload: Workload) => go({ ...question, workload }, 'step'), [go, question]);
  const ask = useCallback((patch: Partial<Omit<Question, 'workload'>>) => go({ ...question, ...patch }, 'typing'), [go, question]);
  return { question, isExample, settled: useSettled(question, 150), change, replace, ask };
}

function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
