import { type DragEvent, useState } from 'react';
import type { Answer, Curve, Prediction } from '../api/client';
import { Problem } from '../api/problem';
import { useCards, useCurve, useModels, usePredictedAnalysis, usePrediction } from '../api/queries';
import { Breakdown } from '../result/Breakdown';
import { CardBar } from '../result/CardBar';
import { Changes } from '../result/Changes';
import { ChangesToFit } from '../result/ChangesToFit';
import { MemoryChart, SpeedChart } from '../result/Charts';
import { CopyAs } from '../result/CopyAs';
import { Cost } from '../result/Cost';
import { Figures } from '../result/Figures';
import { KeptResult } from '../result/KeptResult';
import { Notes, Proof } from '../result/Proof';
import { ResultTable } from '../result/ResultTable';
import { Stages } from '../result/Stages';
import { Verdict, whyNot } from '../result/Verdict';
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
import { Run } from './Run';
import { useRun } from './useRun';

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
          <MeasurePanel question={question} busy={run.busy} onBegin={(engine) => void run.begin(question, engine)} />
        </FormPanel>
        <div className="flex min-w-0 flex-col gap-6">
          {dropped && <ErrorBox problem={dropped} title="This file is not a config.json" onDismiss={() => setDropped(undefined)} />}
          {run.problem && <ErrorBox problem={run.problem} title="It could not be started" onDismiss={run.dismiss} />}
          {run.id && <Run id={run.id} watched={run.watched} onClose={run.close} kept={`/history/${run.id}`} />}
          {ran && <KeptResult answer={ran} workload={asAsked(run.watched.analysis?.workload ?? {}, models)} title={model} />}
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
  const { settled, change } = state;
  const { hours_per_year: _, price_per_hour: __, run_tokens: ___, run_samples: ____, ...aboutMemory } = settled;
  const { data: curve } = useCurve(aboutMemory, answer !== undefined && answer.optimal_batch_size > 0); // what is read first is asked first
  if (!prediction) return <Waiting />;
  return (
    <div className={`flex flex-col gap-6 transition-opacity ${old ? 'opacity-60' : ''}`} aria-busy={old}>
      <Answered prediction={prediction} answer={answer} onApply={change} />
      {pipeline && <Stages prediction={prediction} />}
      {answer && (
        <>
          <Figures answer={answer} />
          <Notes answer={answer} open />
        </>
      )}
      {answer && <More state={state} answer={answer} curve={curve} />}
      <Breakdown workload={settled.workload} answer={answer} />
      {answer && <Proof answer={answer} />}
      {curve?.points && <ResultTable points={curve.points} />}
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

function More({ state, answer, curve }: { state: QuestionState; answer: Answer; curve?: Curve }) {
  const { settled, change } = state;
  const { hours_per_year: _, price_per_hour: __, run_tokens: ___, run_samples: ____, ...aboutMemory } = settled;
  const copy = <CopyAs question={settled} answer={answer} />;
  if (answer.optimal_batch_size === 0) return copy; // what does not train has no cost
  return (
    <div className="grid items-start gap-6 xl:grid-cols-2">
      <Changes question={aboutMemory} answer={answer} onApply={change} />
      <div className="flex min-w-0 flex-col gap-6">
        <Cost answer={answer} state={state} />
        {copy}
      </div>
      <MemoryChart answer={answer} curve={curve} />
      <SpeedChart answer={answer} curve={curve} />
    </div>
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
