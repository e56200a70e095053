import { Link } from 'wouter';
import type { Answer, Workload } from '../api/client';
import { bytes, count } from '../format';
import { MemoryChart, SpeedChart } from './Charts';
import { Headline } from './Headline';
import { MemoryBars } from './MemoryBars';
import { ResultTable } from './ResultTable';

/** KeptResult is an answer that stands: what was found once, with what had been predicted of it. */
export function KeptResult({ answer, workload }: { answer: Answer; workload: Workload }) {
  const { predicted, provenance, seconds, snapshot_id: recording } = answer;
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <Headline answer={answer} />
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
      <MemoryBars answer={answer} workload={workload} />
      <div className="grid gap-6 xl:grid-cols-2">
        <MemoryChart answer={answer} />
        <SpeedChart answer={answer} />
      </div>
      {answer.results && <ResultTable points={answer.results} />}
    </div>
  );
}

function signed(percent: number): string {
  return `${percent > 0 ? '+' : ''}${Number(percent.toPrecision(2))}`;
}
