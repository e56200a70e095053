import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import type { Problem } from '../api/problem';

interface Props {
  problem: Problem;
  title?: string;
  onDismiss?: () => void;
  children?: ReactNode;
}

/** ErrorBox says what happened and what to do, until it is dismissed. */
export function ErrorBox({ problem, title = 'Something went wrong', onDismiss, children }: Props) {
  return (
    <div role="alert" className="animate-appear rounded-lg border border-bad/50 bg-bad-soft p-4">
      <div className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <p className="font-semibold text-bad-text">{title}</p>
          {problem.details.length > 1 ? (
            <ul className="mt-1 list-disc pl-5 text-sm">
              {problem.details.map((detail) => (
                <li key={detail.message}>{sentence(detail.message)}</li>
              ))}
            </ul>
          ) : (
            <p className="mt-1 text-sm">{sentence(problem.message)}</p>
          )}
          {problem.advice && <p className="mt-2 text-sm text-muted">{problem.advice}</p>}
          {children && <div className="mt-3">{children}</div>}
        </div>
        {onDismiss && (
          <button type="button" onClick={onDismiss} aria-label="Dismiss" className="rounded p-1 text-muted hover:text-text">
            <X size={16} aria-hidden />
          </button>
        )}
      </div>
    </div>
  );
}

// sentence makes one of what the server says, which begins small as errors do.
function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? '' : '.');
}
