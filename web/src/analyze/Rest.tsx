import type { Answer, Curve, Prediction } from '../api/client';
import { useCurve } from '../api/queries';
import { Breakdown } from '../result/Breakdown';
import { Changes } from '../result/Changes';
import { MemoryChart, SpeedChart } from '../result/Charts';
import { CopyAs } from '../result/CopyAs';
import { Cost } from '../result/Cost';
import { Figures } from '../result/Figures';
import { Notes, Proof } from '../result/Proof';
import { ResultTable } from '../result/ResultTable';
import { Stages } from '../result/Stages';
import type { QuestionState } from '../workload/useQuestion';

interface Props {
  state: QuestionState;
  prediction: Prediction;
  answer?: Answer;
  pipeline: boolean;
}

/** Rest is all of an answer below its verdict. */
export default function Rest({ state, prediction, answer, pipeline }: Props) {
  const { settled } = state;
  const { hours_per_year: _, price_per_hour: __, run_tokens: ___, run_samples: ____, ...aboutMemory } = settled;
  const { data: curve } = useCurve(aboutMemory, answer !== undefined && answer.optimal_batch_size > 0); // what is read first is asked first
  return (
    <>
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
    </>
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
