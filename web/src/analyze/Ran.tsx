import type { Answer, Model } from '../api/client';
import { KeptResult } from '../result/KeptResult';
import { asAsked } from '../workload/subject';
import { Run } from './Run';
import type { RunState } from './useRun';

interface Props {
  run: RunState;
  /** what it found, unless that is the prediction that is shown */
  answer?: Answer;
  models: Model[];
  title: string;
}

/** Ran is an analysis that was begun here: its course, and its answer. */
export default function Ran({ run: { id, watched, close }, answer, models, title }: Props) {
  return (
    <>
      {id && <Run id={id} watched={watched} onClose={close} kept={`/history/${id}`} />}
      {answer && <KeptResult answer={answer} workload={asAsked(watched.analysis?.workload ?? {}, models)} title={title} />}
    </>
  );
}
