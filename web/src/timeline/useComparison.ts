import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { decode, summary, type Summary } from './data';
import { type Compare, type Recording, useCompare, useSnapshot } from './queries';
import { nameOf } from './Sources';
import type { Stage } from './stage';

/** ComparisonState is another recording laid over this one. */
export interface ComparisonState {
  id: string; // of the other snapshot, or none
  name: string;
  compare: Compare | null;
  problem: string;
  aligned: boolean; // the first difference lies over itself
  setAligned(aligned: boolean): void;
}

/** useComparison fetches the other recording and where the two part, and marks both on the stage. */
export function useComparison(stage: Stage, recording: Recording, id: string): ComparisonState {
  const other = useSnapshot(id);
  const compare = useCompare(recording, id);
  const [aligned, setAligned] = useState(true);
  const line = useActiveLine(id);
  const first = compare.data?.differences[0];
  const shift = aligned && first ? first.predicted.event - first.measured.event : 0;
  useEffect(() => {
    stage.setMarks({ overlay: line && { summary: line, shift }, difference: first ? first.predicted.event + 1 : null });
  }, [stage, line, shift, first]);
  const failed = other.error ?? compare.error;
  return {
    id,
    name: other.data ? nameOf(other.data) : '',
    compare: compare.data ?? null,
    problem: failed ? Problem.of(failed).message : '',
    aligned,
    setAligned,
  };
}

const columns = 4000;

/** useActiveLine is the active memory of another recording; its shapes are not needed. */
function useActiveLine(id: string): Summary | null {
  const line = useQuery({
    queryKey: ['active line', id],
    queryFn: async ({ signal }) =>
      summary(decode(await answer(api.GET('/v1/snapshots/{id}/timeline', { params: { path: { id }, query: { columns, detail: 1 } }, signal })))),
    enabled: id !== '',
    staleTime: Infinity,
  });
  return line.data ?? null;
}
