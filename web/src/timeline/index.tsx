import { useQueryClient } from '@tanstack/react-query';
import { type DragEvent, useCallback, useEffect, useMemo, useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import type { Workload } from '../api/client';
import { Problem } from '../api/problem';
import { ErrorBox } from '../ui/ErrorBox';
import { Loading } from '../ui/Loading';
import { workloadIn } from '../workload/address';
import { type Snapshot, upload, usePredicted, useSnapshot } from './queries';
import { Sources } from './Sources';
import { Timeline } from './Timeline';

/** TimelinePage shows a snapshot: one that is dropped, one that is kept, or a prediction. The address says which. */
export default function TimelinePage() {
  const address = useAddress();
  const id = address.get('snapshot');
  const named = useSnapshot(id);
  const predicted = usePredicted(id ? null : address.workload);
  const wanted = id !== '' || address.workload !== null;
  const snapshot = id ? named : predicted;
  const dropped = useDrop(address.set);
  return (
    <div {...dropped.handlers} className="flex min-h-[60vh] flex-col gap-4">
      {dropped.over && <DropHint />}
      {dropped.problem && <ErrorBox problem={dropped.problem} title="This file could not be opened" onDismiss={dropped.dismiss} />}
      {dropped.share !== null && <Progress name={dropped.name} share={dropped.share} />}
      {!wanted && <Sources onOpen={(chosen) => address.set({ snapshot: chosen.id })} onFile={dropped.open} />}
      {wanted && snapshot.isPending && <Loading what="the snapshot" />}
      {wanted && snapshot.isError && (
        <ErrorBox problem={Problem.of(snapshot.error)} title="This snapshot cannot be shown" onDismiss={() => address.set({ snapshot: '' })} />
      )}
      {wanted && snapshot.data && <Timeline key={snapshot.data.id} snapshot={snapshot.data} address={address} onFile={dropped.open} />}
    </div>
  );
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

/** useDrop takes files that are dropped anywhere on the page. */
function useDrop(open: (change: Record<string, string>) => void) {
  const queries = useQueryClient();
  const [over, setOver] = useState(false);
  const [name, setName] = useState('');
  const [share, setShare] = useState<number | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);

  const receive = useCallback(
    async (file: File, as: 'snapshot' | 'with' = 'snapshot') => {
      setProblem(null);
      setName(file.name);
      setShare(0);
      try {
        const snapshot: Snapshot = await upload(file, setShare);
        queries.setQueryData(['snapshot', snapshot.id], snapshot);
        void queries.invalidateQueries({ queryKey: ['snapshots'] });
        open({ [as]: snapshot.id });
      } catch (error) {
        setProblem(Problem.of(error));
      } finally {
        setShare(null);
      }
    },
    [open, queries],
  );

  useEffect(() => {
    const end = () => setOver(false);
    window.addEventListener('drop', end);
    return () => window.removeEventListener('drop', end);
  }, []);

  const handlers = {
    onDragOver: (event: DragEvent) => {
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: (event: DragEvent) => {
      if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOver(false);
    },
    onDrop: (event: DragEvent) => {
      event.preventDefault();
      const file = event.dataTransfer.files[0];
      if (file) void receive(file);
    },
  };
  return { over, name, share, problem, handlers, open: receive, dismiss: () => setProblem(null) };
}

function DropHint() {
  return (
    <div aria-hidden className="pointer-events-none fixed inset-4 z-40 grid place-items-center rounded-xl border-2 border-dashed border-accent bg-bg/80">
      <p className="text-lg font-semibold text-accent-text">Drop the snapshot to open it</p>
    </div>
  );
}

function Progress({ name, share }: { name: string; share: number }) {
  return (
    <div role="status" className="rounded-lg border border-line bg-surface p-4 text-sm">
      <p className="mb-2 truncate">{share < 1 ? `Sending ${name}` : `Reading ${name}`}…</p>
      <progress className="h-1.5 w-full accent-accent-text" aria-label={`How much of ${name} is sent`} value={share} max={1} />
    </div>
  );
}
