import { useState } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { type HistoryFilter, useHistory } from '../api/queries';
import { count } from '../format';
import { Button, buttonLook } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { ErrorBox } from '../ui/ErrorBox';
import { SelectInput, TextInput } from '../ui/Inputs';
import { Loading } from '../ui/Loading';
import { PageTitle } from '../ui/PageTitle';
import { Removed } from '../ui/Removed';
import { Tabs } from '../ui/Tabs';
import { useRemoval } from '../ui/useRemoval';
import { HistoryTable } from './HistoryTable';
import { Recordings } from './Recordings';

const states = { '': 'any', queued: 'waiting', running: 'running', succeeded: 'done', failed: 'failed', cancelled: 'cancelled' };
const engines = { '': 'any', predicted: 'predicted', emulated: 'emulated', measured: 'measured' };
const kinds = [
  { value: 'analyses', name: 'Analyses' },
  { value: 'recordings', name: 'Recordings' },
];

/** HistoryPage lists what is kept: analyses with their answers, and recordings. */
export default function HistoryPage() {
  const [, navigate] = useLocation();
  const shown = new URLSearchParams(useSearch()).get('show') === 'recordings' ? 'recordings' : 'analyses';
  return (
    <>
      <PageTitle title="History">Analyses with their answers, and recordings of memory, newest first.</PageTitle>
      <div className="mb-5">
        <Tabs label="Kind" tabs={kinds} value={shown} onChange={(kind) => navigate(kind === 'analyses' ? '/history' : `/history?show=${kind}`)} />
      </div>
      {shown === 'analyses' ? <Analyses /> : <Recordings />}
    </>
  );
}

function Analyses() {
  const [filter, setFilter] = useState<HistoryFilter>({});
  const [chosen, setChosen] = useState<string[]>([]);
  const history = useHistory(filter);
  const removal = useRemoval(async (id) => {
    await answer(api.DELETE('/v1/analyses/{id}', { params: { path: { id }, query: { forget: true } }, keepalive: true }));
    await history.refetch();
  });
  const all = history.data?.pages.flatMap((page) => page.analyses ?? []) ?? [];
  const analyses = all.filter(({ id }) => id !== removal.pending?.id);
  const total = (history.data?.pages[0]?.total ?? 0) - (all.length - analyses.length);
  const choose = (patch: Record<string, string>) => setFilter({ ...filter, ...mapEmpty(patch) });
  return (
    <>
      <search className="mb-5 grid grid-cols-2 gap-4 sm:grid-cols-[minmax(0,1fr)_10rem_10rem] [&>:first-child]:col-span-2 sm:[&>:first-child]:col-span-1">
        <TextInput label="Find" placeholder="model, card, precision, optimizer" value={filter.q ?? ''} onChange={(q) => choose({ q })} />
        <SelectInput label="State" options={states} value={filter.state ?? ''} onChange={(state) => choose({ state })} />
        <SelectInput label="Evidence" options={engines} value={filter.engine ?? ''} onChange={(engine) => choose({ engine })} />
      </search>
      {history.error && <ErrorBox problem={Problem.of(history.error)} />}
      {history.isPending && <Loading what="the history" />}
      {history.isSuccess && analyses.length === 0 && <Nothing filtered={Object.values(filter).some(Boolean)} />}
      {analyses.length > 0 && (
        <>
          <Chosen ids={chosen} onClear={() => setChosen([])} />
          <HistoryTable analyses={analyses} chosen={chosen} onChoose={setChosen} onRemove={removal.remove} />
          <div className="mt-4 flex items-center justify-between text-xs text-muted">
            <span>
              {count(analyses.length)} of {count(total)}
            </span>
            {history.hasNextPage && (
              <Button size="small" disabled={history.isFetchingNextPage} onClick={() => void history.fetchNextPage()}>
                Show older
              </Button>
            )}
          </div>
        </>
      )}
      <Removed removal={removal} />
    </>
  );
}

// Two that are chosen are set side by side.
function Chosen({ ids, onClear }: { ids: string[]; onClear(): void }) {
  return (
    <div className="mb-3 flex min-h-8 flex-wrap items-center gap-3 text-sm">
      {ids.length === 0 && <span className="text-xs text-muted">Select two to compare them.</span>}
      {ids.length === 1 && <span className="text-xs text-muted">Select another one to compare with.</span>}
      {ids.length === 2 && (
        <Link href={`/history/compare?a=${ids[0]}&b=${ids[1]}`} className={buttonLook('primary', 'small')}>
          Compare the two
        </Link>
      )}
      {ids.length > 0 && (
        <Button look="quiet" size="small" onClick={onClear}>
          Clear
        </Button>
      )}
    </div>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No analysis matches">Try other words, or “any”.</Empty>;
  return (
    <Empty title="Nothing yet">
      <p>Analyses that you start on the Analyze page are kept here with their answers. You can open, compare and repeat them.</p>
      <Link href="/" className={`mt-4 ${buttonLook('primary', 'normal')}`}>
        Analyze a model
      </Link>
    </Empty>
  );
}

function mapEmpty(patch: Record<string, string>): HistoryFilter {
  return Object.fromEntries(Object.entries(patch).map(([key, value]) => [key, value || undefined]));
}
