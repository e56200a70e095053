import { Link } from 'wouter';
import type { Schemas } from '../api/client';
import { Problem } from '../api/problem';
import { useWorkers } from '../api/queries';
import { moment } from '../format';
import { Empty } from '../ui/Empty';
import { ErrorBox } from '../ui/ErrorBox';
import { Loading } from '../ui/Loading';
import { PageTitle } from '../ui/PageTitle';

type Worker = Schemas['JobWorker'];

/** WorkersPage shows the fleet: who has which cards, and what runs on them. */
export default function WorkersPage() {
  const fleet = useWorkers();
  return (
    <>
      <PageTitle title="Workers">Machines that take analyses. A worker with a card measures on it; any worker predicts.</PageTitle>
      {fleet.error && <ErrorBox problem={Problem.of(fleet.error)} />}
      {fleet.isPending && <Loading what="the workers" />}
      {fleet.data?.workers?.length === 0 && <Empty title="No worker was heard of lately">The server itself predicts, as soon as it has started.</Empty>}
      <ul className="grid gap-4 lg:grid-cols-2">
        {fleet.data?.workers?.map((worker) => (
          <WorkerCard key={worker.id} worker={worker} lease={fleet.data.lease_seconds} now={fleet.dataUpdatedAt} />
        ))}
      </ul>
      <section className="mt-8 rounded-lg border border-line bg-surface p-5 text-sm">
        <h2 className="font-semibold">Add a GPU host</h2>
        <p className="mt-1 text-muted">On a machine with a card, PyTorch and this program:</p>
        <pre className="mt-3 rounded border border-line bg-bg p-3 font-mono text-xs whitespace-pre-wrap">memorymark worker --join {location.origin}</pre>
        <p className="mt-3 text-muted">
          To drain a worker, end it with Ctrl-C or SIGTERM: it takes no more, lets what runs go on for a while, and gives back the rest.
        </p>
      </section>
    </>
  );
}

function WorkerCard({ worker, lease, now }: { worker: Worker; lease: number; now: number }) {
  const [state, look] = stateOf(worker, lease, now);
  return (
    <li className="rounded-lg border border-line bg-surface p-5">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold">{worker.host}</h2>
        <span className={`rounded-full px-2.5 py-0.5 text-xs ${look}`}>{state}</span>
      </div>
      <p className="mt-0.5 text-xs break-all text-muted">
        {worker.id}
        {worker.version && `, ${worker.version}`}
      </p>
      <ul className="mt-4 divide-y divide-line border-y border-line text-sm">
        {worker.cards?.map((card, index) => (
          // Two cards of one kind differ by their place alone.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={`${card.id} ${index}`} className="flex items-center justify-between gap-3 py-2">
            <span>
              {card.name ?? card.id} {card.name && card.name !== card.id && <span className="text-xs text-muted">{card.id}</span>}
            </span>
            {card.job ? (
              <Link href={`/history/${card.job}`} className="text-xs text-accent-text underline underline-offset-4">
                at work
              </Link>
            ) : (
              <span className="text-xs text-muted">free</span>
            )}
          </li>
        ))}
      </ul>
      <p className="mt-3 text-xs text-muted">
        {worker.since && `Here since ${moment(worker.since)}`}
        {worker.seen && `, last heard of at ${moment(worker.seen)}`}
      </p>
    </li>
  );
}

function stateOf(worker: Worker, lease: number, now: number): [string, string] {
  const silent = worker.seen ? (now - Date.parse(worker.seen)) / 1000 : 0;
  if (silent > lease) return ['lost', 'bg-bad-soft text-bad-text'];
  if (worker.draining) return ['draining', 'bg-warn-soft text-warn-text'];
  if (worker.cards?.some((card) => card.job)) return ['at work', 'bg-raised text-info-text'];
  return ['ready', 'bg-accent-soft text-accent-text'];
}
