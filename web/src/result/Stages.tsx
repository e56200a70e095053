import type { Workload } from '../api/client';
import { usePrediction } from '../api/queries';
import { bytes, count, rate } from '../format';
import { Evidence } from '../ui/Evidence';
import { Skeleton } from '../ui/Loading';
import { Panel } from '../ui/Panel';
import { parallelOf } from '../workload/describe';
import { Breakdown } from './Breakdown';

/** Stages is what each GPU of a pipeline takes at today's batch. */
export function Stages({ workload }: { workload: Workload }) {
  const { data, isPlaceholderData } = usePrediction(workload);
  if (!data?.ranks || !data.workload) return <Skeleton className="h-64" />;
  const stages = parallelOf(data.workload)?.stages ?? [];
  return (
    <div className={`flex flex-col gap-6 ${isPlaceholderData ? 'opacity-60' : ''}`} aria-busy={isPlaceholderData}>
      <h1 className="max-w-4xl text-2xl leading-snug font-semibold tracking-tight text-balance sm:text-[2rem]">
        Batch {count(data.workload.batch ?? 1)} {data.fits ? 'trains' : 'does not train'} in a pipeline of {stages.length} GPUs
      </h1>
      <Panel title="What each GPU takes" aside={<Evidence engine="predicted" />}>
        <table className="w-full text-sm">
          <thead className="text-xs text-muted">
            <tr>
              {['GPU', 'Layers', 'Allocated', 'Reserved'].map((title) => (
                <th key={title} scope="col" className="pb-2 text-right font-normal">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {data.ranks.map(({ ranks, peak_allocated, peak_reserved, decides }) => (
              <tr key={ranks} className={`border-t border-line ${decides ? 'font-semibold' : ''}`}>
                <td className="py-1 text-right">{ranks}</td>
                <td className="py-1 text-right">{stages[Number(ranks)]}</td>
                <td className="py-1 text-right">{bytes(peak_allocated)}</td>
                <td className="py-1 text-right">{bytes(peak_reserved)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        <p className="mt-4 text-sm text-muted">
          Each GPU may reserve {bytes(data.limit)}.{data.samples_per_second ? ` About ${rate(data.samples_per_second)} samples/s.` : ''} The
          largest batch of a pipeline is not looked for.
        </p>
      </Panel>
      <Breakdown workload={workload} />
    </div>
  );
}
