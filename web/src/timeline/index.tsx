import { useMemo } from 'react';
import { useLocation, useSearch } from 'wouter';
import type { Workload } from '../api/client';
import { site } from '../api/engine';
import { Problem } from '../api/problem';
import { ErrorBox } from '../ui/ErrorBox';
import { Loading } from '../ui/Loading';
import { workloadIn } from '../workload/address';
import { usePredicted, useSnapshot } from './queries';
import { Sources } from './Sources';
import { Timeline } from './Timeline';

/** TimelinePage shows a snapshot: one that is kept, or a prediction. The address says which. */
export default function TimelinePage() {
  const address = useAddress();
  const id = address.get('snapshot');
  const named = useSnapshot(id);
  const predicted = usePredicted(id ? null : address.workload);
  const wanted = id !== '' || address.workload !== null;
  const snapshot = id ? named : predicted;
  return (
    <div className="flex min-h-[60vh] flex-col gap-4">
      {!wanted && <Sources onOpen={(chosen) => address.set({ snapshot: chosen.id })} />}
      {wanted && snapshot.isPending && <Loading what="the snapshot" />}
      {wanted && snapshot.isError && (
        <ErrorBox problem={problemOf(snapshot.error)} title="This snapshot cannot be shown" onDismiss={() => address.set({ snapshot: '' })} />
      )}
      {wanted && snapshot.data && <Timeline key={snapshot.data.id} snapshot={snapshot.data} address={address} />}
    </div>
  );
}

/** problemOf says what is wrong; a page without a server keeps nothing. */
function problemOf(error: unknown): Problem {
  const problem = Problem.of(error);
  if (site === undefined) return problem;
  const advice = problem.status === 404 ? 'Without a server, files are read in this page and kept nowhere. Drop it here again.' : '';
  return new Problem(problem.status, problem.message, [], advice);
}

/** Address reads and writes the part of the address after the question mark. */
export interface Address {
  workload: Workload | null; // a question in the address is a process to predict
  get(key: string): string;
  set(change: Record<string, string>): void;
}

function useAddress(): Address {
  const search = useSearch();
  const [, navigate] = useLocation();
  const get = (key: string) => new URLSearchParams(search).get(key) ?? '';
  const set = (change: Record<string, string>) => {
    // Another snapshot is another matter; the rest would not fit it.
    const next = new URLSearchParams('snapshot' in change ? '' : location.search);
    for (const [key, value] of Object.entries(change)) {
      if (value) next.set(key, value);
      else next.delete(key);
    }
    const text = next.toString();
    navigate(text ? `/timeline?${text}` : '/timeline', { replace: !('snapshot' in change) });
  };
  const workload = useMemo(() => workloadIn(search), [search]);
  return { workload, get, set };
}
