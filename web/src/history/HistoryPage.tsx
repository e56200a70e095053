import { useState } from 'react';
import { Problem } from '../api/problem';
import { type HistoryFilter, useHistory } from '../api/queries';
import { count } from '../format';
import { Button } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { ErrorBox } from '../ui/ErrorBox';
import { SelectInput, TextInput } from '../ui/Inputs';
import { Loading } from '../ui/Loading';
import { PageTitle } from '../ui/PageTitle';
import { HistoryRow } from './HistoryRow';

const states = { '': 'any', queued: 'waiting', running: 'running', succeeded: 'done', failed: 'failed', cancelled: 'cancelled' };
const engines = { '': 'any', predicted: 'predicted', emulated: 'emulated', measured: 'measured' };

/** HistoryPage lists what was asked: to open, to repeat, to delete. */
export default function HistoryPage() {
  const [filter, setFilter] = useState<HistoryFilter>({});
  const [failure, setFailure] = useState<Problem>();
  const history = useHistory(filter);
  const analyses = history.data?.pages.flatMap((page) => page.analyses ?? []) ?? [];
  const total = history.data?.pages[0]?.total ?? 0;
  const problem = failure ?? (history.error ? Problem.of(history.error) : undefined);
  const choose = (patch: Record<string, string>) => setFilter({ ...filter, ...mapEmpty(patch) });
  return (
    <>
      <PageTitle title="History">All analyses that were measured or saved, newest first.</PageTitle>
      <search className="mb-5 grid gap-4 grid-cols-2 sm:grid-cols-[minmax(0,1fr)_10rem_10rem] [&>:first-child]:col-span-2 sm:[&>:first-child]:col-span-1">
        <TextInput label="Find" placeholder="model, card, precision, optimizer" value={filter.q ?? ''} onChange={(q) => choose({ q })} />
        <SelectInput label="State" options={states} value={filter.state ?? ''} onChange={(state) => choose({ state })} />
        <SelectInput label="Evidence" options={engines} value={filter.engine ?? ''} onChange={(engine) => choose({ engine })} />
      </search>
      {problem && <ErrorBox problem={problem} onDismiss={() => setFailure(undefined)} />}
      {history.isPending && <Loading what="the history" />}
      {history.isSuccess && analyses.length === 0 && <Nothing filtered={Object.values(filter).some(Boolean)} />}
      {analyses.length > 0 && (
        <>
          <ul className="divide-y divide-line rounded-lg border border-line bg-surface">
            {analyses.map((analysis) => (
              <HistoryRow key={analysis.id} analysis={analysis} onFailure={setFailure} />
            ))}
          </ul>
          <div className="mt-4 flex items-center justify-between text-xs text-muted">
            <span>
              {count(analyses.length)} of {count(total)}
            </span>
            {history.hasNextPage && (
              <Button size="small" disabled={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
                Older ones
              </Button>
            )}
          </div>
        </>
      )}
    </>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No analysis matches" />;
  return <Empty title="Nothing yet">Measure something or save a prediction on the Analyze page, and it appears here.</Empty>;
}

function mapEmpty(patch: Record<string, string>): HistoryFilter {
  return Object.fromEntries(Object.entries(patch).map(([key, value]) => [key, value || undefined]));
}
