import { X } from 'lucide-react';
import { useState } from 'react';
import { Link } from 'wouter';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { ended, type Watched } from '../api/watch';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { Panel } from '../ui/Panel';
import { Terminal } from '../ui/Terminal';

interface Props {
  id: string;
  watched: Watched;
  onClose(): void;
  /** where it is kept, unless one is there */
  kept?: string;
}

const titles = { measured: 'Measuring', emulated: 'Emulating', predicted: 'Analysis' };

/** Run is an analysis that one watches: its live terminal, a way to cancel it, and where its answer is. */
export function Run({ id, watched: { analysis, lines, interrupted }, onClose, kept }: Props) {
  const [problem, setProblem] = useState<Problem>();
  const [cancelling, setCancelling] = useState(false);
  const over = ended(analysis);

  async function cancel() {
    setCancelling(true);
    try {
      await answer(api.DELETE('/v1/analyses/{id}', { params: { path: { id } } }));
    } catch (error) {
      setProblem(Problem.of(error));
      setCancelling(false);
    }
  }

  return (
    <Panel
      title={titles[analysis?.engine ?? 'predicted']}
      aside={
        <span className="flex items-center gap-2">
          {over ? (
            <>
              {kept && (
                <Link href={kept} className="text-xs text-accent-text underline underline-offset-4">
                  Open in the history
                </Link>
              )}
              <Button look="quiet" size="small" aria-label="Close the terminal" onClick={onClose}>
                <X size={14} aria-hidden />
              </Button>
            </>
          ) : (
            <Button look="danger" size="small" disabled={cancelling} onClick={cancel}>
              {cancelling ? 'Cancelling…' : 'Cancel'}
            </Button>
          )}
        </span>
      }
    >
      <Terminal lines={lines} busy={!over} />
      {interrupted && !over && <p className="mt-2 text-xs text-warn-text">Connection lost; reconnecting.</p>}
      {problem && (
        <div className="mt-3">
          <ErrorBox problem={problem} title="Cancelling failed" onDismiss={() => setProblem(undefined)} />
        </div>
      )}
    </Panel>
  );
}
