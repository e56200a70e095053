import { Cpu, Gauge, type LucideIcon, Save } from 'lucide-react';
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

/** MeasurePanel begins an analysis that is kept: measured by a worker that has the card, predicted by any, or emulated by one that needs no GPU. */
export function MeasurePanel({ question, busy, onBegin }: Props) {
  const card = cardOf(question.workload, useCards().data);
  const workers = useWorkers().data?.workers ?? [];
  const measuring = card ? ableTo(workers, card.id).length : 0;
  const emulating = ableTo(workers, emulation).length;
  const save = (
    <Action key="save" name="Save" Icon={Save} disabled={busy} onClick={() => onBegin('predicted')}>
      Keeps this answer in the history.
    </Action>
  );
  const measure = (
    <Action key="measure" name="Measure" Icon={Gauge} first={measuring > 0} disabled={busy || measuring === 0} onClick={() => onBegin('measured')}>
      {measuring > 0 ? (
        `Real steps on ${measuring === 1 ? 'the' : 'one of'} ${measuring} worker${measuring === 1 ? '' : 's'} with this card.`
      ) : (
        <>
          No worker has this card. Start <Command>memorymark worker --join</Command> on a machine that has one.
        </>
      )}
    </Action>
  );
  const emulate = (
    <Action key="emulate" name="Emulate" Icon={Cpu} disabled={busy || emulating === 0} onClick={() => onBegin('emulated')}>
      {emulating > 0 ? (
        'A real PyTorch on an emulated card: for models that cannot be predicted, and to check a prediction.'
      ) : (
        <>
          No worker can emulate. Start <Command>memorymark worker --join</Command> on a machine with a CUDA build of PyTorch; it needs no GPU.
        </>
      )}
    </Action>
  );
  // What works here comes first.
  return <div className="mt-5 flex flex-col print:hidden gap-2">{measuring > 0 ? [measure, save, emulate] : [save, emulate, measure]}</div>;
}

interface ActionProps {
  name: string;
  Icon: LucideIcon;
  first?: boolean;
  disabled: boolean;
  onClick(): void;
  /** what it does, or why it cannot */
  children: ReactNode;
}

function Action({ name, Icon, first = false, disabled, onClick, children }: ActionProps) {
  return (
    <>
      <Button look={first ? 'primary' : 'plain'} disabled={disabled} onClick={onClick}>
        <Icon size={15} aria-hidden /> {name}
      </Button>
      <p className="mb-1 text-xs text-muted">{children}</p>
    </>
  );
}

function Command({ children }: { children: string }) {
  return <code className="font-mono whitespace-nowrap">{children}</code>;
}
