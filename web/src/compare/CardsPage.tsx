import { ArrowDown, ArrowUp } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { answer, api, type Schemas } from '../api/client';
import { useCards } from '../api/queries';
import { bytes, count, dollars, price, rate } from '../format';
import { Empty } from '../ui/Empty';
import { TextInput } from '../ui/Inputs';
import { addressOf, without } from '../workload/address';
import { useQuestion } from '../workload/useQuestion';
import { ComparePage } from './ComparePage';
import { type Order, sorted } from './order';
import { useEach } from './useEach';

type Row = Schemas['OnCard'];

interface Column {
  key: keyof Row;
  title: string;
  show(row: Row): string;
  /** only where there is space */
  wide?: boolean;
  /** more is better */
  more?: boolean;
}

const money = (n: number | undefined) => (n === undefined ? '' : dollars(n));
const columns: Column[] = [
  { key: 'gpu_total_bytes', title: 'Memory', show: (r) => bytes(r.gpu_total_bytes), wide: true, more: true },
  { key: 'optimal_batch_size', title: 'Largest batch', show: (r) => (r.error ? '' : count(r.optimal_batch_size)), more: true },
  { key: 'recommended_batch_size', title: 'Recommended', show: (r) => (r.recommended_batch_size ? count(r.recommended_batch_size) : ''), wide: true },
  { key: 'samples_per_second', title: 'Samples/s', show: (r) => (r.samples_per_second ? rate(r.samples_per_second) : ''), more: true },
  { key: 'tokens_per_second', title: 'Tokens/s', show: (r) => (r.tokens_per_second ? rate(r.tokens_per_second) : ''), wide: true, more: true },
  { key: 'price_per_hour', title: '$ an hour', show: (r) => money(r.price_per_hour), wide: true },
  { key: 'usd_per_million_samples', title: '$ a million samples', show: (r) => money(r.usd_per_million_samples) },
  { key: 'usd_per_million_tokens', title: '$ a million tokens', show: (r) => (r.usd_per_million_tokens === undefined ? '' : price(r.usd_per_million_tokens)), wide: true },
];

/** CardsPage is a workload on every card of the catalog. */
export default function CardsPage() {
  const state = useQuestion();
  const [order, setOrder] = useState<Order<Row>>({ key: 'usd_per_million_samples', down: false });
  const [text, setText] = useState('');
  const ids = (useCards().data?.gpus ?? []).map(({ id }) => id);
  const question = without(state.settled, 'gpu', 'batch'); // neither says anything of another card
  const each = useEach(
    ids,
    (id) => ['cards', id, question],
    (id, signal) => answer(api.POST('/v1/comparisons/cards', { body: { ...question, gpus: [id] }, signal })),
  );
  const all = each.parts.flatMap(({ cards }) => cards ?? []);
  const found = all.filter((row) => row.gpu_name.toLowerCase().includes(text.toLowerCase()));
  const small = found.filter(isTooSmall);
  const rows = sorted(found.filter((row) => !isTooSmall(row)), order);
  const shown = columns.filter(({ show }) => all.some((row) => show(row) !== ''));
  const best = Math.max(...all.map((row) => row.samples_per_second ?? 0));
  return (
    <ComparePage
      title="Compare cards"
      about="The same workload on every card: the largest batch that trains, the speed at the recommended batch, and what a million samples cost there."
      state={state}
      without={['gpu', 'batch']}
      problem={each.problem}
      missing={each.missing}
      of={ids.length}
      accuracy={each.parts[0]?.accuracy}
    >
      <div className="sm:max-w-xs">
        <TextInput label="Filter" placeholder="a name, such as RTX" value={text} onChange={setText} />
      </div>
      {rows.length > 0 && (
        <div className="rounded-lg border border-line bg-surface px-4 py-2 sm:px-5">
          <table className="w-full text-sm">
            <thead className="text-xs text-muted">
              <tr>
                <SortHeader title="Card" name="gpu_name" order={order} onSort={setOrder} />
                {shown.map((column) => (
                  <SortHeader key={column.key} title={column.title} name={column.key} more={column.more} wide={column.wide} right order={order} onSort={setOrder} />
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <CardRow key={row.gpu} row={row} columns={shown} best={best} href={`/?${addressOf({ ...state.question, workload: { ...state.question.workload, gpu: row.gpu } })}`} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      <TooSmall rows={small} />
      {found.length === 0 && each.missing === 0 && ids.length > 0 && !each.problem && <Empty title={`No card has “${text}” in its name`} />}
    </ComparePage>
  );
}

// What the server says about a card that is too small.
const isTooSmall = ({ error }: Row) => /^batch \d+, the smallest, does not train/.test(error ?? '');

/** TooSmall is one line for all cards on which nothing trains; what each lacks is behind it. */
function TooSmall({ rows }: { rows: Row[] }) {
  if (rows.length === 0) return null;
  return (
    <details className="rounded-lg border border-line bg-surface px-4 py-3 text-sm sm:px-5">
      <summary className="min-h-6 text-muted hover:text-text">{rows.length === 1 ? '1 card is too small' : `${rows.length} cards are too small`}</summary>
      <ul className="mt-3 divide-y divide-line">
        {rows.map((row) => (
          <li key={row.gpu} className="py-1.5">
            <span className="font-medium">{row.gpu_name.replace(/^NVIDIA /, '')}</span> <span className="text-xs text-muted">{row.error}</span>
          </li>
        ))}
      </ul>
    </details>
  );
}

function CardRow({ row, columns: shown, best, href }: { row: Row; columns: Column[]; best: number; href: string }) {
  return (
    <tr className="border-t border-line">
      <th scope="row" className="py-2 pr-2 text-left font-normal">
        <Link href={href} className="rounded hover:text-accent-text">
          {row.gpu_name.replace(/^NVIDIA /, '')}
        </Link>
        {row.error && <span className="block text-xs text-muted">{row.error}</span>}
        <span aria-hidden className="mt-1 block h-0.5 rounded-full bg-accent" style={{ width: `${((row.samples_per_second ?? 0) / (best || 1)) * 100}%` }} />
      </th>
      {shown.map((column) => (
        <td key={column.key} title={column.key === 'price_per_hour' ? row.price_source : undefined} className={`py-2 pl-2 text-right ${column.wide ? 'hidden md:table-cell' : ''}`}>
          {column.show(row)}
        </td>
      ))}
    </tr>
  );
}

interface SortProps {
  title: string;
  name: keyof Row;
  order: Order<Row>;
  more?: boolean;
  wide?: boolean;
  right?: boolean;
  onSort(order: Order<Row>): void;
}

function SortHeader({ title, name, order, more = false, wide, right, onSort }: SortProps) {
  const here = order.key === name;
  const Arrow = order.down ? ArrowDown : ArrowUp;
  return (
    <th
      scope="col"
      aria-sort={here ? (order.down ? 'descending' : 'ascending') : 'none'}
      className={`py-2 font-normal ${right ? 'pl-2 text-right' : 'text-left'} ${wide ? 'hidden md:table-cell' : ''}`}
    >
      <button
        type="button"
        onClick={() => onSort({ key: name, down: here ? !order.down : more })}
        className={`inline-flex items-center gap-1 rounded ${right ? 'text-right' : 'text-left'} hover:text-text ${here ? 'text-text' : ''}`}
      >
        {title}
        {here && <Arrow size={12} aria-hidden />}
      </button>
    </th>
  );
}
