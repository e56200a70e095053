import { Link } from 'wouter';
import type { Schemas } from '../api/client';
import { useModels } from '../api/queries';
import { bytes, count, dollars, duration, rate } from '../format';
import { CopyButton } from '../ui/CopyButton';
import { Empty } from '../ui/Empty';
import { Panel } from '../ui/Panel';
import { addressOf } from '../workload/address';
import { labelsOf } from '../workload/changes';
import { asAsked } from '../workload/subject';
import { Picture } from './Picture';
import { Recipe } from './Recipe';

type Plan = Schemas['Plan'];
type Option = Schemas['Option'];

/** PlanResult is a plan: the best ways, the picture of all, and the lists behind it. */
export function PlanResult({ plan }: { plan: Plan }) {
  const best = bestOf(plan);
  return (
    <div className="flex min-w-0 animate-appear flex-col gap-6">
      {best.length === 0 && <NothingFits plan={plan} />}
      <div className="grid gap-4 md:grid-cols-2 2xl:grid-cols-3">
        {best.map(({ names, option }) => (
          <Best key={names.join()} names={names} option={option} />
        ))}
      </div>
      <Panel title="Dollars and days" aside={<span className="text-xs text-muted">{count(plan.considered)} ways compared</span>}>
        <Picture plan={plan} best={best} />
      </Panel>
      <Ways options={plan.options ?? []} />
      <Misfits misfits={plan.misfits ?? []} />
      <p className="max-w-4xl text-xs text-muted">{plan.notes?.join(' ')}</p>
    </div>
  );
}

export interface BestWay {
  names: string[];
  option: Option;
}

/** bestOf are the ways that are best in some respect, each once with all that it is best in. */
function bestOf({ cheapest, fastest, simplest, cheapest_of_all_weights: whole }: Plan): BestWay[] {
  const named: [string, Option | undefined][] = [
    ['Cheapest', cheapest],
    ['Fastest', fastest],
    ['Simplest', simplest],
    ['Cheapest with all weights', whole],
  ];
  const best: BestWay[] = [];
  for (const [name, option] of named) {
    if (!option) continue;
    const same = best.find((way) => way.option.command === option.command);
    if (same) same.names.push(name.toLowerCase());
    else best.push({ names: [name], option });
  }
  return best;
}

function NothingFits({ plan }: { plan: Plan }) {
  const least = plan.misfits?.[0];
  return (
    <Empty title="No way is within these terms">
      {least ? `The nearest: ${least.reason}.` : 'Allow more days, more dollars, more GPUs or adapters.'}
    </Empty>
  );
}

function Best({ names, option }: BestWay) {
  const models = useModels().data?.models ?? [];
  return (
    <section aria-label={names.join(' and ')} className="flex min-w-0 flex-col rounded-lg border border-line bg-surface p-5">
      <h2 className="text-xs text-muted">{names.join(' and ')}</h2>
      <p className="mt-1 text-2xl font-semibold tracking-tight">
        {option.dollars !== undefined && <>{dollars(option.dollars)}, </>}
        {duration(option.days * 24)}
      </p>
      <p className="mt-1 text-sm">
        {count(option.gpus)} × {option.gpu_name}
      </p>
      <p className="mt-1 text-sm text-muted">{labelsOf(option.changes)}</p>
      {option.verdict === 'tight' && (
        <p className="mt-1 text-sm text-bad-text">Tight: {bytes(option.memory.limit_bytes - option.memory.reserved_bytes)} left.</p>
      )}
      <p className="mt-1 mb-4 text-xs text-muted">{speed(option)}</p>
      <div className="mt-auto flex flex-wrap items-center gap-3">
        <CopyButton text={option.command} name="Copy command" />
        <Link href={`/?${addressOf({ workload: asAsked(option.workload, models) })}`} className="inline-flex min-h-6 items-center text-xs text-accent-text underline underline-offset-4">
          Open in Analyze
        </Link>
      </div>
      {option.recipe && <Recipe recipe={option.recipe} />}
    </section>
  );
}

function speed({ speed: { tokens_per_second: tokens, samples_per_second: samples } }: Option): string {
  return tokens ? `${rate(tokens)} tokens/s in all` : `${rate(samples)} samples/s in all`;
}

const cell = 'py-1.5 pl-3 text-right whitespace-nowrap';

function Ways({ options }: { options: Option[] }) {
  if (options.length === 0) return null;
  return (
    <details className="rounded-lg border border-line bg-surface px-5 py-4 text-sm">
      <summary className="min-h-6 text-muted hover:text-text">All {count(options.length)} ways, the cheapest first</summary>
      <div className="mt-3 overflow-x-auto" tabIndex={0} role="region" aria-label="All ways">
        <table className="w-full">
          <thead className="text-xs text-muted">
            <tr>
              <th scope="col" className="pb-2 text-left font-normal">
                GPUs
              </th>
              <th scope="col" className="pb-2 pl-3 text-left font-normal">
                How
              </th>
              {['Batch', 'Days', 'Dollars'].map((title) => (
                <th key={title} scope="col" className="pb-2 pl-3 text-right font-normal">
                  {title}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {options.map((option) => (
              <tr key={`${option.command} ${option.gpus}`} className="border-t border-line">
                <th scope="row" className="py-1.5 text-left font-normal whitespace-nowrap">
                  {count(option.gpus)} × {option.gpu_name.replace(/^NVIDIA /, '')}
                </th>
                <td className="py-1.5 pl-3">
                  {option.setup}
                  {!option.simulated && <span className="text-muted"> (not simulated)</span>}
                  {option.verdict === 'tight' && <span className="text-bad-text"> (tight)</span>}
                </td>
                <td className={cell}>
                  {count(option.batch)}
                  {option.accumulate > 1 && ` × ${count(option.accumulate)}`}
                </td>
                <td className={cell}>{Number(option.days.toPrecision(3))}</td>
                <td className={cell}>{option.dollars === undefined ? '' : dollars(option.dollars)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function Misfits({ misfits }: { misfits: NonNullable<Plan['misfits']> }) {
  if (misfits.length === 0) return null;
  return (
    <details className="rounded-lg border border-line bg-surface px-5 py-4 text-sm">
      <summary className="min-h-6 text-muted hover:text-text">
        {misfits.length === 1 ? 'One way does not fit' : `${count(misfits.length)} do not fit`}, and why
      </summary>
      <ul className="mt-3 divide-y divide-line">
        {misfits.map((misfit) => (
          <li key={`${misfit.gpu} ${misfit.gpus} ${misfit.setup} ${misfit.trains}`} className="py-1.5">
            <span className="font-medium">
              {count(misfit.gpus)} × {misfit.gpu}
            </span>{' '}
            <span className="text-muted">{misfit.reason}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}
