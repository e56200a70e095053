import { useId } from 'react';
import type { Card, Model, Workload } from '../api/client';
import { type Method, methodOf, methods, setOf } from './methods';
import { canCheckpoint } from './subject';
import type { QuestionState } from './useQuestion';

interface Props {
  workload: Workload;
  models: Model[];
  card: Card | undefined;
  onChange: QuestionState['change'];
}

/** MethodInput chooses what is trained: all weights, or adapters over frozen ones. */
export function MethodInput({ workload, models, card, onChange }: Props) {
  const id = useId();
  const chosen = methodOf(workload);
  return (
    <div className="flex flex-col gap-1.5">
      <span id={id} className="text-xs text-muted">
        Method
      </span>
      <div role="group" aria-labelledby={id} className="flex rounded border border-line-strong bg-bg p-0.5">
        {(Object.keys(methods) as Method[]).map((method) => (
          <button
            key={method}
            type="button"
            title={methods[method].about}
            aria-pressed={method === chosen}
            onClick={() => onChange({ ...setOf(method, card), ...(canCheckpoint(workload, models) ? {} : { checkpointing: undefined }) })}
            className="min-h-8 flex-1 rounded-sm px-3 text-sm text-muted transition-colors hover:text-text aria-pressed:bg-raised aria-pressed:font-medium aria-pressed:text-text"
          >
            {method}
          </button>
        ))}
      </div>
    </div>
  );
}
