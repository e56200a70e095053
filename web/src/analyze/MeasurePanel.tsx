import { Cpu, Gauge } from 'lucide-react';
import type { ReactNode } from 'react';
import { useCards, useWorkers } from '../api/queries';
import { Button } from '../ui/Button';
import { ableTo, emulation } from '../workers/state';
import type { Question } from '../workload/address';
import { cardOf } from '../workload/subject';
import type { Engine } from './useRun';

interface Props {
  question: Question;
  busy: boolean;
  onBegin(engine: Engine): void;
}

/** MeasurePanel begins an analysis: measured by a worker that has the card, emulated by one that needs none, or predicted and kept. */
export function MeasurePanel({ question, busy, onBegin }: Props) {
  const card = cardOf(question.workload, useCards().data);
  const workers = useWorkers().data?.workers ?? [];
  const measuring = card ? ableTo(workers, card.id).length : 0;
  const emulating = ableTo(workers, emulation).length;
  return (
    <div className="mt-5 flex flex-col gap-2 border-t border-line pt-5">
      <Button look="primary" disabled={busy || measuring === 0} onClick={() => onBegin('measured')}>
        <Gauge size={15} aria-hidden /> Measure
      </Button>
      <Help>
        {measuring > 0 ? (
          `Real steps on ${measuring === 1 ? 'the' : 'one of'} ${measuring} worker${measuring === 1 ? '' : 's'} with this card.`
        ) : (
          <>
            No worker has this card. <Command>memorymark worker --join</Command> on a machine with one changes that.
          </>
        )}
      </Help>
      <Button disabled={busy || emulating === 0} onClick={() => onBegin('emulated')}>
        <Cpu size={15} aria-hidden /> Emulate
      </Button>
      <Help>
        {emulating > 0 ? (
          'A real PyTorch on a card that is not there: for what is not modelled, and to check a prediction.'
        ) : (
          <>
            No worker emulates. <Command>memorymark worker --join</Command> on a machine with a CUDA build of PyTorch, and no GPU, changes that.
          </>
        )}
      </Help>
      <Button look="quiet" size="small" disabled={busy} onClick={() => onBegin('predicted')}>
        Keep this prediction in the history
      </Button>
    </div>
  );
}

function Help({ children }: { children: ReactNode }) {
  return <p className="text-xs text-muted">{children}</p>;
}

function Command({ children }: { children: string }) {
  return <code className="font-mono whitespace-nowrap">{children}</code>;
}
