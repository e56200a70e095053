import { Gauge } from 'lucide-react';
import type { Schemas } from '../api/client';
import { useCards, useWorkers } from '../api/queries';
import { Button } from '../ui/Button';
import type { Question } from '../workload/address';
import { cardOf } from '../workload/subject';

interface Props {
  question: Question;
  busy: boolean;
  onBegin(engine: 'measured' | 'predicted'): void;
}

/** MeasurePanel begins an analysis: measured where a worker has the card, else predicted and kept. */
export function MeasurePanel({ question, busy, onBegin }: Props) {
  const card = cardOf(question.workload, useCards().data);
  const able = workersWith(useWorkers().data?.workers ?? [], card?.id);
  return (
    <div className="mt-5 flex flex-col gap-2 border-t border-line pt-5">
      <Button look="primary" disabled={busy || able === 0} onClick={() => onBegin('measured')}>
        <Gauge size={15} aria-hidden /> Measure
      </Button>
      <p className="text-xs text-muted">
        {able > 0 ? (
          `Real steps on ${able === 1 ? 'the' : 'one of'} ${able} worker${able === 1 ? '' : 's'} with this card.`
        ) : (
          <>
            No worker has this card. <code className="font-mono whitespace-nowrap">memorymark worker --join</code> on a machine with one changes that.
          </>
        )}
      </p>
      <Button look="quiet" size="small" disabled={busy} onClick={() => onBegin('predicted')}>
        Keep this prediction in the history
      </Button>
    </div>
  );
}

function workersWith(workers: Schemas['Worker'][], card: string | undefined): number {
  return workers.filter((worker) => !worker.draining && worker.cards?.some(({ id }) => id === card)).length;
}
