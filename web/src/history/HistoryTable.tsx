import { RotateCcw, Trash2 } from 'lucide-react';
import { Link } from 'wouter';
import type { Analysis, Answer } from '../api/client';
import { useCards, useModels } from '../api/queries';
import { ended } from '../api/watch';
import { count, moment, price, rate } from '../format';
import { yoursOf } from '../result/batches';
import { words } from '../result/Verdict';
import { Button } from '../ui/Button';
import { addressOf } from '../workload/address';
import { describe } from '../workload/describe';
import { asAsked, isOwnCode, titleOf } from '../workload/subject';
import { StateBadge } from './StateBadge';

interface Props {
  analyses: Analysis[];
  /** ids of those to be compared, two at most */
  chosen: string[];
  onChoose(ids: string[]): void;
  onRemove(id: string, name: string): void;
}

const columns: [title: string, look: string, show: (answer: Answer) => string][] = [
  ['Largest batch', '', (answer) => (answer.optimal_batch_size ? count(answer.optimal_batch_size) : 'none fits')],
  ['Recommended', 'hidden md:table-cell', (answer) => (answer.recommended_batch_size ? count(answer.recommended_batch_size) : '')],
  ['Speed', 'hidden lg:table-cell', ({ bill }) => speedOf(bill)],
  ['$ per million', 'hidden xl:table-cell', ({ bill }) => millionOf(bill)],
];

/** HistoryTable is a row for each analysis, with its answer. */
export function HistoryTable({ analyses, chosen, onChoose, onRemove }: Props) {
  const toggle = (id: string) => onChoose(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen.slice(-1), id]);
  return (
    <div className="rounded-lg border border-line bg-surface px-3 sm:px-5">
      <table className="w-full text-sm">
        <thead className="text-xs text-muted">
          <tr>
            <th scope="col" className="w-8 py-2">
              <span className="sr-only">Compare</span>
            </th>
            <th scope="col" className="py-2 pl-3 text-left font-normal">
              Analysis
            </th>
            {columns.map(([title, look]) => (
              <th key={title} scope="col" className={`py-2 pl-3 text-right font-normal ${look}`}>
                {title}
              </th>
            ))}
            <th scope="col" className="py-2 pl-4 text-left font-normal">
              State
            </th>
            <th scope="col">
              <span className="sr-only">Repeat and delete</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {analyses.map((analysis) => (
            <Row key={analysis.id} analysis={analysis} chosen={chosen.includes(analysis.id)} onToggle={() => toggle(analysis.id)} onRemove={onRemove} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RowProps {
  analysis: Analysis;
  chosen: boolean;
  onToggle(): void;
  onRemove: Props['onRemove'];
}

function Row({ analysis, chosen, onToggle, onRemove }: RowProps) {
  const models = useModels().data?.models ?? [];
  const card = useCards().data?.gpus?.find(({ id }) => id === analysis.gpu);
  const workload = asAsked(analysis.workload ?? {}, models);
  const title = nameOf(analysis, titleOf(workload, models));
  const yours = analysis.answer && yoursOf(analysis.answer);
  const on = card?.name.replace(/^NVIDIA /, '') ?? analysis.gpu;
  return (
    <tr className="border-t border-line align-top">
      <td className="py-2.5">
        <input
          type="checkbox"
          aria-label={`Compare ${title} on ${on}`}
          checked={chosen}
          disabled={!analysis.answer}
          onChange={onToggle}
          className="mt-0.5 block size-6 p-1 accent-(--accent)"
        />
      </td>
      <th scope="row" className="w-full max-w-0 py-2.5 pl-3 text-left font-normal">
        <Link href={`/history/${analysis.id}`} className="block rounded hover:text-accent-text">
          <span className="block font-medium sm:truncate">
            {title} <span className="font-normal text-muted">on {on}</span>
          </span>
          <span className="block text-xs text-muted sm:truncate">
            {analysis.engine}, {describe(workload)}
            {yours && <span className={words[yours.verdict][1]}>{`: ${yours.verdict}`}</span>}
          </span>
          {analysis.state === 'failed' && <span className="block truncate text-xs text-bad-text">{analysis.reason}</span>}
        </Link>
      </th>
      {columns.map(([name, look, show]) => (
        <td key={name} className={`py-2.5 pl-3 text-right whitespace-nowrap ${look}`}>
          {analysis.answer ? show(analysis.answer) : ''}
        </td>
      ))}
      <td className="py-2.5 pl-4 whitespace-nowrap">
        <StateBadge state={analysis.state} />
        <time dateTime={analysis.queued} className="mt-0.5 block text-xs text-muted">
          {moment(analysis.queued)}
        </time>
      </td>
      <td className="py-2 pl-1 sm:pl-2">
        <span className="flex justify-end gap-1">
          <Link
            href={isOwnCode(workload) ? `/history/${analysis.id}` : `/?${addressOf({ workload })}`} // a program is chosen there
            aria-label={`Repeat ${title}`}
            title="Repeat"
            className="hidden min-h-7 items-center rounded px-2.5 text-muted sm:inline-flex hover:bg-raised hover:text-text"
          >
            <RotateCcw size={14} aria-hidden />
          </Link>
          <Button
            look="quiet"
            size="small"
            disabled={!ended(analysis)}
            aria-label={`Delete ${title}`}
            title={ended(analysis) ? 'Delete' : 'Cancel it first'}
            onClick={() => onRemove(analysis.id, `${title} on ${on}`)}
          >
            <Trash2 size={14} aria-hidden />
          </Button>
        </span>
      </td>
    </tr>
  );
}

/** nameOf is what an analysis is of. A user's own code has its name in the answer. */
export function nameOf({ workload, answer }: Analysis, title: string): string {
  if (!isOwnCode(workload ?? {})) return title;
  return answer?.model_name ?? 'Your own code';
}

/** speedOf is how fast training is, in the unit that fits. */
export function speedOf(bill: Answer['bill']): string {
  if (!bill) return '';
  return bill.tokens_per_second ? `${rate(bill.tokens_per_second)} tokens/s` : `${rate(bill.samples_per_second ?? 0)} samples/s`;
}

/** millionOf is what a million tokens or samples cost. */
export function millionOf(bill: Answer['bill']): string {
  const dollars = bill?.tokens_per_second ? bill.usd_per_million_tokens : bill?.usd_per_million_samples;
  return dollars === undefined ? '' : price(dollars);
}
