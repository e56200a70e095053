import { ChevronRight } from 'lucide-react';
import { type ReactNode, useId, useState } from 'react';

interface Props {
  title: string;
  /** what is set in it, shown while it is folded; '' for nothing */
  set: string;
  /** something in it needs attention, so that it cannot stay folded */
  wrong?: boolean;
  children: ReactNode;
}

/** Section is a part of a form that is folded until it is opened. */
export function Section({ title, set, wrong = false, children }: Props) {
  const [chosen, setChosen] = useState(false);
  const open = chosen || wrong;
  const id = useId();
  return (
    <div className="border-t border-line">
      <button
        type="button"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setChosen(!open)}
        className="flex min-h-10 w-full items-center gap-1.5 rounded py-2 text-left text-sm text-muted hover:text-text"
      >
        <ChevronRight size={14} aria-hidden className={`shrink-0 transition-transform ${open ? 'rotate-90' : ''}`} />
        <span className="shrink-0">{title}</span>
        {!open && set && <span className="ml-auto truncate pl-2 text-xs text-accent-text">{set}</span>}
      </button>
      {open && (
        <div id={id} className="flex animate-appear flex-col gap-4 pt-2 pb-5">
          {children}
        </div>
      )}
    </div>
  );
}
