import { useQueries } from '@tanstack/react-query';
import { Link, useSearch } from 'wouter';
import { type Analysis, answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { useCards, useModels } from '../api/queries';
import { bytes, count, percent } from '../format';
import { Empty } from '../ui/Empty';
import { ErrorBox } from '../ui/ErrorBox';
import { Loading } from '../ui/Loading';
import { PageTitle } from '../ui/PageTitle';
import { describe } from '../workload/describe';
import { asAsked, titleOf } from '../workload/subject';
import { millionOf, nameOf, speedOf } from './HistoryTable';

/** ComparePage sets two analyses side by side and marks what differs. */
export default function ComparePage() {
  const from = new URLSearchParams(useSearch());
  const ids = [from.get('a'), from.get('b')].filter((id) => id !== null);
  const kept = useQueries({
    queries: ids.map((id) => ({
      queryKey: ['history', id],
      queryFn: ({ signal }: { signal: AbortSignal }) => answer(api.GET('/v1/analyses/{id}', { params: { path: { id } }, signal })),
    })),
  });
  const failed = kept.find(({ error }) => error);
  const both = kept.flatMap(({ data }) => data ?? []);
  return (
    <>
      <p className="mb-4 text-sm">
        <Link href="/history" className="inline-flex min-h-6 items-center text-muted hover:text-text">
          History
        </Link>
      </p>
      <PageTitle title="Side by side">Differences are marked.</PageTitle>
      {failed && <ErrorBox problem={Problem.of(failed.error)} title="One of the two cannot be shown" />}
      {!failed && ids.length < 2 && <Empty title="Choose two">Select two analyses in the history to compare them.</Empty>}
      {!failed && ids.length === 2 && (both.length === 2 ? <Table both={both} /> : <Loading what="both" />)}
    </>
  );
}

function Table({ both }: { both: Analysis[] }) {
  const models = useModels().data?.models ?? [];
  const cards = useCards().data?.gpus;
  const rows: [string, (analysis: Analysis) => string][] = [
    ['Model', (a) => nameOf(a, titleOf(asAsked(a.workload ?? {}, models), models))],
    ['Card', (a) => cards?.find(({ id }) => id === a.gpu)?.name ?? a.gpu],
    ['Settings', (a) => describe(asAsked(a.workload ?? {}, models))],
    ['Evidence', (a) => a.engine],
    ['Largest batch', (a) => (a.answer?.optimal_batch_size === 0 ? 'none' : count(a.answer?.optimal_batch_size ?? 0))],
    ['Peak of the largest batch', (a) => (a.answer?.optimal_batch_size ? bytes(a.answer.optimal_memory_bytes) : '')],
    ['Recommended batch', (a) => (a.answer?.recommended_batch_size ? count(a.answer.recommended_batch_size) : '')],
    ['Your batch', (a) => `${count(a.answer?.current_batch_size ?? 0)}${a.answer?.current_fits === false ? ', does not fit' : ''}`],
    ['Peak of your batch', (a) => (a.answer?.current_fits ? `${bytes(a.answer.current_memory_bytes)}, ${percent(100 - a.answer.current_waste_percent)} of the card` : '')],
    ['Peak reached in', (a) => a.answer?.peak_phase ?? ''],
    ['Speed at the recommended batch', (a) => speedOf(a.answer?.bill)],
    ['Price of a million tokens or samples', (a) => millionOf(a.answer?.bill)],
    ['PyTorch', (a) => a.answer?.provenance.pytorch ?? ''],
  ];
  return (
    <div className="rounded-lg border border-line bg-surface px-4 sm:px-6">
      <table className="w-full table-fixed text-sm">
        <thead>
          <tr>
            <th scope="col" className="w-1/4 py-3 text-left text-xs font-normal text-muted">
              <span className="sr-only">What</span>
            </th>
            {both.map((analysis, index) => (
              <th key={analysis.id} scope="col" className="py-3 pl-3 text-left font-semibold">
                <Link href={`/history/${analysis.id}`} className="inline-flex min-h-6 items-center rounded hover:text-accent-text">
                  {index === 0 ? 'First' : 'Second'}
                </Link>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, show]) => {
            const [first = '', second = ''] = both.map(show);
            const look = `py-2 pl-3 align-top ${first === second ? 'text-muted' : 'font-medium'}`;
            if (!first && !second) return null;
            return (
              <tr key={name} className="border-t border-line" data-differs={first !== second}>
                <th scope="row" className="py-2 text-left align-top font-normal text-muted">
                  {name}
                </th>
                <td className={look}>{first}</td>
                <td className={`${look} ${first === second ? '' : 'text-accent-text'}`}>{second}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
