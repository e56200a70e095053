import { type DragEvent, Suspense, useState } from 'react';
import type { Answer, Prediction } from '../api/client';
import { Problem } from '../api/problem';
import { useCards, useModels, usePredictedAnalysis, usePrediction } from '../api/queries';
import { CardBar } from '../result/CardBar';
import { ChangesToFit } from '../result/ChangesToFit';
import { Verdict, whyNot } from '../result/Verdict';
import { site } from '../api/engine';
import { fetched } from '../app/fetched';
import { ErrorBox } from '../ui/ErrorBox';
import { Skeleton } from '../ui/Loading';
import { useTitle } from '../ui/useTitle';
import { CodeDialog, type Files, readPython } from '../workload/CodeDialog';
import { parseConfig } from '../workload/ConfigDialog';
import { parallelOf } from '../workload/describe';
import { FormPanel } from '../workload/FormPanel';
import { methodName } from '../workload/methods';
import { asAsked, cardOf, titleOf } from '../workload/subject';
import { type QuestionState, useQuestion } from '../workload/useQuestion';
import { WorkloadForm } from '../workload/WorkloadForm';
import { AskLine } from './AskLine';
import { MeasurePanel } from './MeasurePanel';
import { useRun } from './useRun';

// What is below the verdict arrives after it.
const Rest = fetched(() => import('./Rest'));
const Ran = fetched(() => import('./Ran'));

/** AnalyzePage asks what is trained and answers as it changes. */
export function AnalyzePage() {
  const state = useQuestion();
  const { question, settled, change } = state;
  const pipeline = parallelOf(settled.workload)?.kind === 'pipeline'; // of which only the batch of the question is looked at
  const analysis = usePredictedAnalysis(settled, !pipeline);
  const prediction = usePrediction(settled.workload);
  const failed = prediction.error ?? (pipeline ? null : analysis.error);
  const problem = failed ? Problem.of(failed) : null;
  const old = problem !== null || prediction.isPlaceholderData; // of another question, or of a server that was lost
  const last = useLast({ prediction: prediction.data, answer: analysis.data }, !old && !analysis.isPlaceholderData);
  const shown = problem?.isLost ? last : problem ? ({} as Found) : { prediction: prediction.data, answer: pipeline ? undefined : analysis.data };
  const run = useRun();
  const [dropped, setDropped] = useState<Problem>();
  const [code, setCode] = useState<Files>();
  const models = useModels().data?.models ?? [];
  const card = cardOf(question.workload, useCards().data);
  const ran = run.watched.analysis && run.watched.analysis.engine !== 'predicted' ? run.watched.analysis.answer : undefined;
  const model = titleOf(question.workload, models);
  const title = `${model}, ${methodName(question.workload)}${card ? ` on ${card.name}` : ''}`;
  useTitle(title);

  async function drop(event: DragEvent) {
    const file = event.dataTransfer.files[0];
    if (!file) return;
    event.preventDefault();
    if (file.name.endsWith('.py')) return setCode(await readPython(event.dataTransfer.files));
    const config = parseConfig(await file.text());
    if (typeof config === 'string') setDropped(new Problem(-1, `${file.name}: ${config}`));
    else change({ model: undefined, config });
  }

  return (
    // A config.json or a train.py can be dropped anywhere; the form has buttons that do the same.
    <div onDragOver={(event) => event.preventDefault()} onDrop={drop}>
      <AskLine state={state} />
      <div className="grid grid-cols-1 gap-4 lg:grid-cols-[18rem_minmax(0,1fr)] lg:gap-8">
        <CodeDialog open={code !== undefined} files={code} workload={question.workload} onClose={() => setCode(undefined)} />
        <FormPanel state={state} without={['model', 'gpu']}>
          <WorkloadForm state={state} problem={problem} without={['model', 'gpu']} />
          {site === undefined ? (
            <MeasurePanel question={question} busy={run.busy} onBegin={(engine) => void run.begin(question, engine)} />
          ) : (
            <p className="mt-5 text-xs text-muted">
              To keep answers, to emulate and to measure, start a server of your own: <code className="font-mono whitespace-nowrap">uvx memorymark serve</code>.
            </p>
          )}
        </FormPanel>
        <div className="flex min-w-0 flex-col gap-6">
          {dropped && <ErrorBox problem={dropped} title="This file is not a config.json" onDismiss={() => setDropped(undefined)} />}
          {run.problem && <ErrorBox problem={run.problem} title="It could not be started" onDismiss={run.dismiss} />}
          {run.id && (
            <Suspense>
              <Ran run={run} answer={ran} models={models} title={model} />
            </Suspense>
          )}
          {problem && !ran && !shown.prediction && <h1 className="sr-only">{title}</h1>}
          {problem && !ran && <Refusal key={problem.message} problem={problem} />}
          {!ran && (!problem || shown.prediction) && <Result state={state} {...shown} old={old} pipeline={pipeline} />}
        </div>
      </div>
    </div>
  );
}

interface Found {
  prediction?: Prediction;
  answer?: Answer;
}

/** useLast is what was found last, while it held. */
function useLast({ prediction, answer }: Found, holds: boolean): Found {
  const [last, setLast] = useState<Found>({});
  if (holds && (last.prediction !== prediction || last.answer !== answer)) setLast({ prediction, answer });
  return last;
}

function Refusal({ problem }: { problem: Problem }) {
  const [shown, setShown] = useState(true);
  if (!shown || problem.needsToken) return null;
  const title = problem.details.length > 0 ? 'Invalid settings' : problem.isLost ? 'The server does not answer' : 'There is no answer';
  return <ErrorBox problem={problem} title={title} onDismiss={() => setShown(false)} />;
}

interface ResultProps extends Found {
  state: QuestionState;
  old: boolean;
  pipeline: boolean;
}

function Result({ state, prediction, answer, old, pipeline }: ResultProps) {
  if (!prediction) return <Waiting />;
  return (
    <div className={`flex flex-col gap-6 transition-opacity ${old ? 'opacity-60' : ''}`} aria-busy={old}>
      <Answered prediction={prediction} answer={answer} onApply={state.change} />
      <Suspense fallback={<Skeleton className="h-28" />}>
        <Rest state={state} prediction={prediction} answer={answer} pipeline={pipeline} />
      </Suspense>
    </div>
  );
}

function Answered({ prediction, answer, onApply }: { prediction: Prediction; answer?: Answer; onApply: QuestionState['change'] }) {
  const models = useModels().data?.models ?? [];
  const workload = asAsked(prediction.workload ?? {}, models);
  const card = cardOf({ gpu: prediction.gpu }, useCards().data)?.name ?? prediction.gpu;
  const { breakdown, out_of_memory: oom } = prediction;
  return (
    <Verdict
      title={titleOf(workload, models)}
      card={card}
      workload={workload}
      batch={workload.batch ?? 1}
      verdict={prediction.verdict}
      left={prediction.left}
      margin={prediction.margin}
    >
      {breakdown && <CardBar breakdown={breakdown} card={card} total={prediction.gpu_total} left={prediction.left} />}
      {oom && <p className="mt-4 text-sm text-muted">{whyNot(oom)}</p>}
      {answer ? <ChangesToFit answer={answer} onApply={onApply} /> : !prediction.fits && <Skeleton className="mt-5 h-24" />}
    </Verdict>
  );
}

function Waiting() {
  return (
    <div className="flex flex-col gap-6" aria-busy>
      <Skeleton className="h-64" />
      <Skeleton className="h-28" />
    </div>
  );
}
