import { Link, useLocation, useSearch } from 'wouter';
import type { Schemas } from '../api/client';
import { useCards, useModels } from '../api/queries';
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

interface Props {
  plan: Plan;
  /** the options side by side, as pinOf names them */
  pins: string[];
  onPins(pins: string[]): void;
}

/** PlanResult is a plan: the best ways, the picture of all, and the lists behind it. */
export function PlanResult({ plan, pins, onPins }: Props) {
  const best = bestOf(plan);
  const pinned = pins.flatMap((pin) => (plan.options ?? []).find((option) => pinOf(option) === pin) ?? []);
  // The two that were pinned last are compared.
  const toggle = (option: Option) => onPins(pins.includes(pinOf(option)) ? pins.filter((pin) => pin !== pinOf(option)) : [...pins, pinOf(option)].slice(-2));
  return (
    <div className="flex min-w-0 animate-appear flex-col gap-6">
      {best.length === 0 && <NothingFits plan={plan} />}
      <div className="grid gap-4 md:grid-cols-2 2xl:grid-cols-3">
        {best.map(({ names, option }) => (
          <Best key={names.join()} names={names} option={option} because={option === plan.balanced ? plan.balanced_because : undefined} />
        ))}
      </div>
      <Panel title="Dollars and days" aside={<span className="text-xs text-muted">{count(plan.considered)} ways compared</span>}>
        <Picture plan={plan} best={best} />
      </Panel>
      <Pinned options={pinned} />
      <Ways options={plan.options ?? []} pins={pins} onPin={toggle} />
      <Misfits misfits={plan.misfits ?? []} />
      <LeftOut plan={plan} />
      <p className="max-w-4xl text-xs text-muted">{plan.notes?.join(' ')}</p>
    </div>
  );
}

export interface BestWay {
  names: string[];
  option: Option;
}

/** bestOf are the ways that are best in some respect, each once with all that it is best in. */
function bestOf({ balanced, cheapest, fastest, simplest, cheapest_of_all_weights: whole }: Plan): BestWay[] {
  const named: [string, Option | undefined][] = [
    ['Balanced', balanced],
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
    <Empty title="Nothing fits within these limits">
      {least ? `The closest: ${least.reason}.` : 'Allow more days, more dollars, more GPUs or adapters.'}
    </Empty>
  );
}

function Best({ names, option, because }: BestWay & { because?: string }) {
  const models = useModels().data?.models ?? [];
  return (
    <section aria-label={names.join(' and ')} className="flex min-w-0 flex-col rounded-lg border border-line bg-surface p-5">
      <h2 className="text-xs text-muted">{names.join(' and ')}</h2>
      <p className="mt-1 text-2xl font-semibold tracking-tight">
        {option.dollars !== undefined && <>{dollars(option.dollars)}, </>}
        {duration(option.days * 24)}
      </p>
      {because && <p className="text-sm text-muted">{because}</p>}
      <p className="mt-1 text-sm">
        {count(option.gpus)} × {option.gpu_name}, {memory(option)}
      </p>
      <p className="mt-1 text-sm text-muted">{labelsOf(option.changes)}</p>
      {option.verdict === 'tight' && (
        <p className="mt-1 text-sm text-warn-text">Tight: watch its memory, or use a smaller batch.</p>
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

/** memory is what each GPU reserves of what it may. */
function memory({ memory: { reserved_bytes: reserved, limit_bytes: limit } }: Option): string {
  return `${bytes(reserved)} of ${bytes(limit)}`;
}

/** pinOf names an option in an address: there is one for each card, number of GPUs and kind of training. */
function pinOf({ gpu, gpus, trains }: Option): string {
  return `${gpus}x${gpu}${trains === 'adapters' ? '+adapters' : ''}`;
}

function speed({ speed: { tokens_per_second: tokens, samples_per_second: samples } }: Option): string {
  return tokens ? `${rate(tokens)} tokens/s in all` : `${rate(samples)} samples/s in all`;
}

const cell = 'py-1.5 pl-3 text-right whitespace-nowrap';

function Ways({ options, pins, onPin }: { options: Option[]; pins: string[]; onPin(option: Option): void }) {
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
              {['Memory', 'Batch', 'Days', 'Dollars', 'Pin'].map((title) => (
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
                  {option.verdict === 'tight' && <span className="text-warn-text"> (tight)</span>}
                </td>
                <td className={cell}>{memory(option)}</td>
                <td className={cell}>
                  {count(option.batch)}
                  {option.accumulate > 1 && ` × ${count(option.accumulate)}`}
                </td>
                <td className={cell}>{Number(option.days.toPrecision(3))}</td>
                <td className={cell}>{option.dollars === undefined ? '' : dollars(option.dollars)}</td>
                <td className={cell}>
                  <input
                    type="checkbox"
                    aria-label={`Pin ${option.gpus} × ${option.gpu_name}, ${option.setup}`}
                    checked={pins.includes(pinOf(option))}
                    onChange={() => onPin(option)}
                    className="size-6 p-1 align-middle accent-(--accent)"
                  />
                </td>
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
        {misfits.length === 1 ? 'Why one way does not fit' : `Why ${count(misfits.length)} ways do not fit`}
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

/** Pinned are two options side by side. */
function Pinned({ options }: { options: Option[] }) {
  if (options.length === 0) return null;
  const rows: [string, (option: Option) => string][] = [
    ['GPUs', (o) => `${count(o.gpus)} × ${o.gpu_name}`],
    ['How', (o) => o.setup],
    ['Dollars', (o) => (o.dollars === undefined ? 'no price' : dollars(o.dollars))],
    ['Time', (o) => duration(o.days * 24)],
    ['Memory of each GPU', memory],
    ['Batch of each GPU', (o) => `${count(o.batch)}${o.accumulate > 1 ? ` × ${count(o.accumulate)}` : ''}`],
    ['Speed', speed],
  ];
  return (
    <Panel title={options.length === 1 ? 'Pinned; pin another to compare' : 'Pinned, side by side'}>
      <table className="w-full table-fixed text-sm">
        <tbody>
          {rows.map(([name, show]) => (
            <tr key={name} className="border-t border-line align-top first:border-0">
              <th scope="row" className="w-1/4 py-1.5 text-left font-normal text-muted">
                {name}
              </th>
              {options.map((option) => (
                <td key={pinOf(option)} className="py-1.5 pl-3">
                  {show(option)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  );
}

/** LeftOut names the cards that the plan did not look at. */
function LeftOut({ plan: { options, misfits } }: { plan: Plan }) {
  const cards = useCards().data?.gpus ?? [];
  const [path] = useLocation();
  const asked = new URLSearchParams(useSearch()).has('gpus');
  const seen = new Set([...(options ?? []), ...(misfits ?? [])].map(({ gpu }) => gpu));
  const left = cards.filter(({ id }) => !seen.has(id));
  if (left.length === 0 || asked || path !== '/plan') return null;
  return (
    <details className="max-w-4xl text-xs text-muted">
      <summary className="min-h-6 hover:text-text">{count(left.length)} cards were left out</summary>
      <p className="mt-1">
        {left.map(({ name }) => name.replace(/^NVIDIA /, '')).join(', ')}: they have no list price of about the same time as the others, or cannot be within these terms. Add them
        under “Cards I have” to plan with them.
      </p>
    </details>
  );
}
