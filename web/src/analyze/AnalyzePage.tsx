import { type DragEvent, useState } from 'react';
import { Problem } from '../api/problem';
import { useCurve, useModels, usePredictedAnalysis, usePrediction } from '../api/queries';
import { Breakdown } from '../result/Breakdown';
import { Changes } from '../result/Changes';
import { MemoryChart, SpeedChart } from '../result/Charts';
import { CopyAs } from '../result/CopyAs';
import { Cost } from '../result/Cost';
import { Headline } from '../result/Headline';
import { MemoryBars } from '../result/MemoryBars';
import { ResultTable } from '../result/ResultTable';
import { Stages } from '../result/Stages';
import { WaysToFit } from '../result/WaysToFit';
import { ErrorBox } from '../ui/ErrorBox';
import { Skeleton } from '../ui/Loading';
import { useTitle } from '../ui/useTitle';
import { parallelOf } from '../workload/describe';
import { asAsked, titleOf } from '../workload/subject';
import { CodeDialog, type Files, readPython } from '../workload/CodeDialog';
import { parseConfig } from '../workload/ConfigDialog';
import { FormPanel } from '../workload/FormPanel';
import { type QuestionState, useQuestion } from '../workload/useQuestion';
import { WorkloadForm } from '../workload/WorkloadForm';
import { KeptResult } from '../result/KeptResult';
import { MeasurePanel } from './MeasurePanel';
import { Run } from './Run';
import { useRun } from './useRun';

/** AnalyzePage asks what is trained and answers as it changes. */
export function AnalyzePage() {
  const state = useQuestion();
  const { settled, change } = state;
  const pipeline = parallelOf(settled.workload)?.kind === 'pipeline'; // of which only today's batch is looked at
  const analysis = usePredictedAnalysis(settled, !pipeline);
  const prediction = usePrediction(settled.workload);
  const failed = pipeline ? prediction.error : analysis.error;
  const problem = failed ? Problem.of(failed) : null;
  const run = useRun();
  const [dropped, setDropped] = useState<Problem>();
  const [code, setCode] = useState<Files>();
  const models = useModels().data?.models ?? [];
  const ran = run.watched.analysis && run.watched.analysis.engine !== 'predicted' ? run.watched.analysis.answer : undefined;
  const title = titleOf(state.question.workload, models);
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
    <div
      className="grid grid-cols-1 gap-6 lg:grid-cols-[20rem_minmax(0,1fr)] lg:gap-10"
      onDragOver={(event) => event.preventDefault()}
      onDrop={drop}
    >
      <CodeDialog open={code !== undefined} files={code} workload={state.question.workload} onClose={() => setCode(undefined)} />
      <FormPanel state={state}>
        <WorkloadForm state={state} problem={problem} />
        <MeasurePanel question={state.question} busy={run.busy} onBegin={(engine) => void run.begin(state.question, engine)} />
      </FormPanel>
      <div className="flex min-w-0 flex-col gap-6">
        {dropped && <ErrorBox problem={dropped} title="This file is not a config.json" onDismiss={() => setDropped(undefined)} />}
        {run.problem && <ErrorBox problem={run.problem} title="It could not be started" onDismiss={run.dismiss} />}
        {run.id && <Run id={run.id} watched={run.watched} onClose={run.close} kept={`/history/${run.id}`} />}
        {ran && <KeptResult answer={ran} workload={asAsked(run.watched.analysis?.workload ?? {}, models)} />}
        {problem && !ran && <h1 className="sr-only">{title}</h1>}
        {problem && !ran && <Refusal key={problem.message} problem={problem} />}
        {problem?.isTooLarge && !ran && <WaysToFit question={settled} onApply={change} />}
        {problem && !ran && prediction.data && !prediction.isPlaceholderData && <Breakdown workload={settled.workload} />}
        {!problem && !ran && (pipeline ? <Stages workload={settled.workload} /> : <Result state={state} />)}
      </div>
    </div>
  );
}

function Refusal({ problem }: { problem: Problem }) {
  const [shown, setShown] = useState(true);
  if (!shown || problem.needsToken) return null;
  const title = problem.details.length > 0 ? 'Invalid workload' : problem.isLost ? 'The server does not answer' : 'This does not train';
  return <ErrorBox problem={problem} title={title} onDismiss={() => setShown(false)} />;
}

function Result({ state }: { state: QuestionState }) {
  const { settled, change } = state;
  const { data: answer, isPlaceholderData } = usePredictedAnalysis(settled);
  const { hours_per_year: _, price_per_hour: __, run_tokens: ___, run_samples: ____, ...aboutMemory } = settled;
  const { data: curve } = useCurve(aboutMemory, answer !== undefined); // what is read first is asked first
  if (!answer) return <Waiting state={state} />;
  return (
    <div className={`flex flex-col gap-6 transition-opacity ${isPlaceholderData ? 'opacity-60' : ''}`} aria-busy={isPlaceholderData}>
      <Headline answer={answer} />
      {!answer.current_fits && <WaysToFit question={settled} onApply={change} />}
      <div className="grid gap-6 xl:grid-cols-2">
        <div className="flex min-w-0 flex-col gap-6">
          <MemoryBars answer={answer} workload={settled.workload} />
          <Cost answer={answer} state={state} />
        </div>
        <div className="flex min-w-0 flex-col gap-6">
          <Changes question={aboutMemory} answer={answer} onApply={change} />
          <CopyAs question={settled} answer={answer} />
        </div>
        <MemoryChart answer={answer} curve={curve} />
        <SpeedChart answer={answer} curve={curve} />
      </div>
      <Breakdown workload={settled.workload} answer={answer} />
      {curve?.points && <ResultTable points={curve.points} />}
    </div>
  );
}

// What is known before the whole answer is: a single prediction takes milliseconds.
function Waiting({ state }: { state: QuestionState }) {
  return (
    <div className="flex flex-col gap-6" aria-busy>
      <Skeleton className="h-10 w-3/4" />
      <Skeleton className="h-28" />
      <Breakdown workload={state.settled.workload} />
    </div>
  );
}
