import type { Prediction } from '../api/client';
import { bytes, rate } from '../format';
import { Evidence } from '../ui/Evidence';
import { Panel } from '../ui/Panel';
import { parallelOf } from '../workload/describe';

/** Stages is what each GPU of a pipeline takes. */
export function Stages({ prediction: data }: { prediction: Prediction }) {
  if (!data.ranks || !data.workload) return null;
  const stages = parallelOf(data.workload)?.stages ?? [];
  return (
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
          largest batch of a pipeline is not searched for.
        </p>
      </Panel>
  );
}
