import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Answer, Workload } from '../api/client';
import { usePrediction } from '../api/queries';
import { bytes, count } from '../format';
import { yoursOf } from './batches';
import { Breakdown } from './Breakdown';
import { CardBar } from './CardBar';
import { ChangesToFit } from './ChangesToFit';
import { MemoryChart, SpeedChart } from './Charts';
import { Figures } from './Figures';
import { Notes, Proof } from './Proof';
import { ResultTable } from './ResultTable';
import { Verdict } from './Verdict';

interface Props {
  answer: Answer;
  workload: Workload;
  /** the model's name */
  title: string;
  children?: ReactNode;
}

/** KeptResult is an answer that stands: what was found once, with what had been predicted of it. */
export function KeptResult({ answer, workload, title, children }: Props) {
  const { predicted, provenance, seconds, snapshot_id: recording } = answer;
  const yours = yoursOf(answer);
  const { data } = usePrediction(workload, answer.engine === 'predicted'); // what was found otherwise has no causes
  const failed = yours && !yours.success && answer.engine !== 'predicted'; // a run that fails does not say what it lacks
  const breakdown = answer.engine === 'predicted' ? data?.breakdown : undefined;
  const { memory_bytes: allocated = 0, reserved_bytes: reserved = 0, left_bytes: left } = yours ?? {};
  return (
    <div className="flex min-w-0 flex-col gap-6">
      {!yours && (
        <h1 className="text-2xl font-semibold tracking-tight">
          Batch {count(answer.optimal_batch_size)} is the largest that fits: {title} on {answer.gpu_name}
        </h1>
      )}
      {yours && (
        <Verdict
          title={title}
          card={answer.gpu_name}
          workload={workload}
          batch={answer.current_batch_size}
          verdict={yours.verdict}
          left={failed ? undefined : left}
          margin={answer.margin_bytes}
        >
          {breakdown && <CardBar breakdown={breakdown} card={answer.gpu_name} total={answer.gpu_total_bytes} left={left ?? 0} />}
          <p className="mt-4 text-sm text-muted">
            {answer.engine}: {failed ? 'it runs out of memory within' : `${bytes(allocated)} allocated and ${bytes(reserved)} reserved at the peak, of`} the{' '}
            {bytes(answer.limit_bytes)} that PyTorch may use.
          </p>
          <ChangesToFit answer={answer} />
        </Verdict>
      )}
      <Figures answer={answer} />
      <Notes answer={answer} open />
      {predicted && (
        <p className="text-sm text-muted">
          Predicted was batch {count(predicted.optimal_batch_size)}
          {predicted.optimal_memory_bytes
            ? `, and ${bytes(predicted.optimal_memory_bytes)} for batch ${count(answer.optimal_batch_size)} (${signed(predicted.memory_error_percent)} %)`
            : ''}
          .{seconds && ` Importing took ${seconds.import.toFixed(1)} s, finding the batch ${seconds.search.toFixed(1)} s, timing ${seconds.throughput.toFixed(1)} s.`}
          {provenance.differences?.map((difference) => ` Differs from what is predicted: ${difference}.`)}
        </p>
      )}
      {recording && (
        <p className="text-sm">
          <Link href={`/timeline?snapshot=${recording}`} className="text-accent-text underline underline-offset-4">
            See the recording of batch {count(answer.optimal_batch_size)} over time
          </Link>
        </p>
      )}
      {children}
      {answer.optimal_batch_size > 0 && (
        <div className="grid gap-6 xl:grid-cols-2">
          <MemoryChart answer={answer} />
          <SpeedChart answer={answer} />
        </div>
      )}
      {(workload.model ?? workload.config) && <Breakdown workload={workload} answer={answer} />}
      <Proof answer={answer} />
      {answer.results && <ResultTable points={answer.results} />}
    </div>
  );
}

function signed(percent: number): string {
  return `${percent > 0 ? '+' : ''}${Number(percent.toPrecision(2))}`;
}
