import { useState } from 'react';
import { Link } from 'wouter';
import type { Answer, Prediction, Schemas, Workload } from '../api/client';
import { site } from '../api/engine';
import { usePrediction } from '../api/queries';
import { bytes, count } from '../format';
import { Button } from '../ui/Button';
import { Evidence } from '../ui/Evidence';
import { Skeleton } from '../ui/Loading';
import { Panel } from '../ui/Panel';
import { Tabs } from '../ui/Tabs';
import { timelineOf } from '../workload/address';
import { batchesOf } from './batches';
import { causes } from './causes';
import { groupModules } from './modules';

/** Breakdown shows where the memory goes at the peak, by cause and by module, for a batch that is chosen. */
export function Breakdown({ workload, answer }: { workload: Workload; answer?: Answer }) {
  const batches = answer ? batchesOf(answer) : [];
  const [chosen, setChosen] = useState<string>('yours');
  const batch = batches.find(({ name }) => name === chosen)?.size;
  const shown = batch ? { ...workload, batch } : workload;
  const { data } = usePrediction(shown);
  return (
    <Panel title="Where the memory goes at the peak" aside={<Evidence engine="predicted" />}>
      {batches.length > 1 && (
        <Tabs
          label="Batch"
          tabs={batches.map(({ name, size }) => ({ value: name, name: `${name}, ${count(size)}` }))}
          value={chosen}
          onChange={setChosen}
        />
      )}
      {data?.breakdown ? (
        <div className="mt-5 grid gap-8 lg:grid-cols-2">
          <Causes breakdown={data.breakdown} />
          <div>
            <Modules prediction={data} />
            {site === undefined && (
              <p className="mt-4 text-sm">
                <Link href={timelineOf(shown)} className="text-accent-text underline underline-offset-4">
                  See it over time
                </Link>
              </p>
            )}
          </div>
        </div>
      ) : (
        <Skeleton className="mt-5 h-64" />
      )}
    </Panel>
  );
}

function Causes({ breakdown }: { breakdown: Schemas['Breakdown'] }) {
  return (
    <div>
      <div className="flex h-4 overflow-hidden rounded-full bg-raised" aria-hidden>
        {causes.map(([cause, name, token]) => (
          <div key={cause} title={`${name}: ${bytes(breakdown[cause])}`} style={{ flexGrow: breakdown[cause], background: `var(--cause-${token})` }} />
        ))}
      </div>
      <table className="mt-4 w-full text-sm">
        <caption className="sr-only">Memory at the peak by cause</caption>
        <tbody>
          {causes
            .filter(([cause]) => breakdown[cause] > 0)
            .map(([cause, name, token]) => (
              <tr key={cause}>
                <th scope="row" className="py-0.5 text-left font-normal">
                  <span aria-hidden className="mr-2.5 inline-block size-2.5 rounded-sm" style={{ background: `var(--cause-${token})` }} />
                  {name}
                </th>
                <td className="py-0.5 text-right">{bytes(breakdown[cause])}</td>
              </tr>
            ))}
          <tr className="border-t border-line">
            <th scope="row" className="pt-2 text-left font-semibold">
              Total
            </th>
            <td className="pt-2 text-right font-semibold">{bytes(breakdown.total)}</td>
          </tr>
        </tbody>
      </table>
    </div>
  );
}

const fewModules = 9;

function Modules({ prediction: { modules } }: { prediction: Prediction }) {
  const [all, setAll] = useState(false);
  const groups = groupModules(modules ?? []);
  const most = Math.max(...groups.map(({ layers, each }) => layers * each));
  return (
    <div>
      <ol aria-label="Memory at the peak by module" className="flex flex-col gap-1.5 text-xs">
        {groups.slice(0, all ? undefined : fewModules).map(({ name, layers, each }) => (
          <li key={name} className="grid grid-cols-[minmax(0,1fr)_minmax(2rem,15%)_5rem] items-center gap-3 sm:grid-cols-[minmax(0,1fr)_minmax(3rem,30%)_5rem]">
            <span className="min-w-0">
              <span className="block font-mono wrap-anywhere">{name}</span>
              {layers > 1 && (
                <span className="text-muted">
                  {count(layers)} × {bytes(each)}
                </span>
              )}
            </span>
            <span aria-hidden className="h-2 rounded-full bg-cause-bar" style={{ width: `${((layers * each) / most) * 100}%` }} />
            <span className="text-right">{bytes(layers * each)}</span>
          </li>
        ))}
      </ol>
      {groups.length > fewModules && (
        <Button look="quiet" size="small" className="mt-2" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? 'Show fewer' : `Show all ${groups.length} modules`}
        </Button>
      )}
    </div>
  );
}
