import { Button } from './Button';
import { ErrorBox } from './ErrorBox';
import type { RemovalState } from './useRemoval';

/** Removed says what was deleted, and gives it back. */
export function Removed({ removal: { pending, problem, undo, dismiss } }: { removal: RemovalState }) {
  return (
    <>
      {problem && (
        <div className="mb-4">
          <ErrorBox problem={problem} title="It could not be deleted" onDismiss={dismiss} />
        </div>
      )}
      <div role="status" className="pointer-events-none fixed inset-x-0 bottom-6 z-40 flex justify-center px-4">
        {pending && (
          <p className="pointer-events-auto flex max-w-full animate-appear items-center gap-4 rounded-lg border border-line-strong bg-raised px-4 py-2.5 text-sm shadow-2xl shadow-black/40">
            <span className="min-w-0 truncate">Deleted {pending.name}</span>
            <Button size="small" onClick={undo}>
              Undo
            </Button>
          </p>
        )}
      </div>
    </>
  );
}
