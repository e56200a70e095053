import { Problem } from '../api/problem';
import { useWorkers } from '../api/queries';
import { Empty } from '../ui/Empty';
import { ErrorBox } from '../ui/ErrorBox';
import { Loading } from '../ui/Loading';
import { PageTitle } from '../ui/PageTitle';
import { WorkerCard } from './WorkerCard';

/** WorkersPage shows the fleet: who has which cards, and what runs on them. */
export default function WorkersPage() {
  const fleet = useWorkers();
  return (
    <>
      <PageTitle title="Workers">Machines that run analyses. A worker with a GPU measures on it; any worker can predict.</PageTitle>
      {fleet.error && <ErrorBox problem={Problem.of(fleet.error)} />}
      {fleet.isPending && <Loading what="the workers" />}
      {fleet.data?.workers?.length === 0 && <Empty title="No workers">The server itself still predicts.</Empty>}
      <ul className="grid gap-4 lg:grid-cols-2">
        {fleet.data?.workers?.map((worker) => (
          <WorkerCard key={worker.id} worker={worker} lease={fleet.data.lease_seconds} now={fleet.dataUpdatedAt} />
        ))}
      </ul>
      <section className="mt-8 rounded-lg border border-line bg-surface p-5 text-sm">
        <h2 className="font-semibold">Add a GPU host</h2>
        <p className="mt-1 text-muted">On a machine with a GPU, PyTorch and MemoryMark:</p>
        <pre className="mt-3 rounded border border-line bg-bg p-3 font-mono text-xs whitespace-pre-wrap">memorymark worker --join {location.origin}</pre>
        <p className="mt-3 text-muted">
          A drained worker finishes what it runs, takes no new jobs and leaves. The server's own workers stay, and wait until you resume them. To stop a worker
          sooner, press Ctrl-C on its machine or send it SIGTERM: its job may run for a while longer, and then goes to another worker.
        </p>
      </section>
    </>
  );
}
