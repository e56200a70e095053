import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { answer, api, type Schemas } from '../api/client';
import { Problem } from '../api/problem';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';

/** Drain lets a worker take no more, after asking back, and resumes one that drains. */
export function Drain({ worker }: { worker: Schemas['Worker'] }) {
  const [asking, setAsking] = useState(false);
  const queries = useQueryClient();
  const path = { params: { path: { id: worker.id } } };
  const tell = useMutation({
    mutationFn: (what: 'drain' | 'resume') => answer(what === 'drain' ? api.POST('/v1/workers/{id}/drain', path) : api.DELETE('/v1/workers/{id}/drain', path)),
    onSettled: () => {
      setAsking(false);
      return queries.invalidateQueries({ queryKey: ['workers'] });
    },
  });
  if (tell.isError) {
    return (
      <div className="basis-full">
        <ErrorBox problem={Problem.of(tell.error)} title="The worker could not be reached" onDismiss={tell.reset} />
      </div>
    );
  }
  if (worker.draining) {
    return (
      <Button size="small" disabled={tell.isPending} onClick={() => tell.mutate('resume')}>
        Resume
      </Button>
    );
  }
  if (!asking) {
    return (
      <Button size="small" onClick={() => setAsking(true)}>
        Drain
      </Button>
    );
  }
  return (
    <div role="group" aria-label={`Drain ${worker.host}`} className="flex basis-full flex-wrap items-center justify-end gap-2 text-xs">
      <span className="text-warn-text">{worker.resident ? 'Pause this worker? It takes no new jobs until it is resumed.' : 'Drain this worker? It finishes its jobs, takes no new ones and leaves.'}</span>
      {/* Who pressed Drain by key continues here. */}
      {/* oxlint-disable-next-line jsx-a11y/no-autofocus */}
      <Button size="small" autoFocus disabled={tell.isPending} onClick={() => setAsking(false)}>
        Cancel
      </Button>
      <Button size="small" look="danger" disabled={tell.isPending} onClick={() => tell.mutate('drain')}>
        {tell.isPending ? 'Sending…' : 'Drain it'}
      </Button>
    </div>
  );
}
