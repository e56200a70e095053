import { SlidersHorizontal } from 'lucide-react';
import { type ReactNode, useId, useState } from 'react';
import { useCards, useModels } from '../api/queries';
import { describe } from './describe';
import { cardOf, titleOf } from './subject';
import type { QuestionState } from './useQuestion';
import type { Varied } from './WorkloadForm';

interface Props {
  state: QuestionState;
  /** what the page varies by itself, and so is not said */
  without?: Varied[];
  children: ReactNode;
}

/**
 * FormPanel holds a form next to what it is about. Where there is no space next to
 * it, it is one line that says what is asked, so that the answer comes first.
 */
export function FormPanel({ state: { question }, without = [], children }: Props) {
  const [open, setOpen] = useState(false);
  const models = useModels().data?.models ?? [];
  const card = cardOf(question.workload, useCards().data);
  const id = useId();
  return (
    <aside className="min-w-0 self-start rounded-lg border border-line bg-surface lg:sticky lg:top-20 lg:max-h-[calc(100vh-6rem)] lg:overflow-y-auto">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
        className="flex min-h-12 w-full items-center gap-3 rounded-lg px-4 py-2.5 text-left text-sm lg:hidden"
      >
        <span className="min-w-0 flex-1">
          {!without.includes('model') && (
            <span className="block truncate font-medium">
              {titleOf(question.workload, models)}
              {card && !without.includes('gpu') && <span className="font-normal text-muted"> on {card.name}</span>}
            </span>
          )}
          <span className="block truncate text-xs text-muted">{describe(question.workload, without)}</span>
        </span>
        <span className="flex shrink-0 items-center gap-1.5 text-xs text-accent-text">
          <SlidersHorizontal size={14} aria-hidden /> {open ? 'Close' : 'Change'}
        </span>
      </button>
      <div id={id} className={`border-t border-line p-5 lg:block lg:border-0 ${open ? '' : 'hidden'}`}>
        {children}
      </div>
    </aside>
  );
}
