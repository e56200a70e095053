import { Link } from 'wouter';
import type { Schemas, Workload } from '../api/client';
import { usePredictedAnalysis, usePrediction } from '../api/queries';
import { Button, buttonLook } from '../ui/Button';
import { timelineOf } from '../workload/address';
import { labelsOf, patchOf } from '../workload/changes';
import { formatBytes, formatCount } from './format';

interface Props {
  failure: Schemas['FailureInfo'];
  /** of a prediction, which knows what the run would have asked for later */
  workload: Workload | null;
  onGo(event: number): void;
}

/** FailureBox explains a failure: the line that asked, for how much, what was free, what forbade it, what was live, and what would help. */
export function FailureBox({ failure, workload, onGo }: Props) {
  const why = failure.explanation;
  const place = failure.made_by.user_frame ?? failure.made_by.model_frame;
  return (
    <section aria-label="Out of memory" className="rounded-lg border border-bad/40 bg-bad-soft px-4 py-2 text-sm">
      <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1">
        <h2 className="font-semibold text-bad-text">Out of memory at event {formatCount(failure.event)}</h2>
        {place && (
          <code className="font-mono text-xs">
            {place.file}:{place.line} {place.function}
          </code>
        )}
        <Button size="small" className="ml-auto" onClick={() => onGo(failure.event)} title="Go to the out-of-memory error (o)">
          Show
        </Button>
      </div>
      <p className="mt-0.5">
        {place ? 'This line asked for' : 'The program asked for'} {formatBytes(failure.asked_bytes)}. {formatBytes(failure.live_bytes)} was allocated
        {why && (
          <>
            , {formatBytes(why.reserved_bytes)} reserved; of that {formatBytes(why.free_bytes)} was free in {formatCount(why.free_pieces)} pieces, the largest{' '}
            {formatBytes(why.largest_free_bytes)}
          </>
        )}
        . {forbidden(failure)}
      </p>
      <Live groups={failure.largest_live ?? []} />
      {workload ? <WholeRun workload={workload} /> : why?.remedies && why.remedies.length > 0 && <Remedies remedies={why.remedies} />}
    </section>
  );
}

/** forbidden says what kept PyTorch from taking more: a limit that was set for it, or the card. */
export function forbidden({ explanation: why, device_free_bytes: free }: Pick<Schemas['FailureInfo'], 'explanation' | 'device_free_bytes'>): string {
  if (why?.limit_and_not_device) {
    const had = free ? ` The card still had ${formatBytes(free)} free.` : '';
    return `A limit forbade more, not the card: set_per_process_memory_fraction, or per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF.${had}`;
  }
  return free === undefined ? '' : `The card had ${formatBytes(free)} left.`;
}

const shown = 5;

/** Live is what the memory was used for, by the line that asked for it. */
function Live({ groups }: { groups: Schemas['TopGroup'][] }) {
  if (groups.length === 0) return null;
  return (
    <details className="mt-0.5 text-xs">
      <summary className="min-h-6 text-muted hover:text-text">What was live, by line</summary>
      <ul aria-label="What was live" className="mt-1 flex flex-col gap-0.5">
        {groups.slice(0, shown).map((group, index) => {
          const place = group.user_frame ?? group.model_frame;
          return (
            // oxlint-disable-next-line react/no-array-index-key
            <li key={index} className="flex flex-wrap gap-x-3">
              <span className="w-20 text-right font-mono">{formatBytes(group.total_bytes)}</span>
              <span className="min-w-0 flex-1 truncate font-mono">{place ? `${place.file}:${place.line} ${place.function}` : (group.category ?? 'before the recording')}</span>
            </li>
          );
        })}
      </ul>
    </details>
  );
}

/** WholeRun says what all steps need, and which changes give it: a prediction knows every request that would have come. */
function WholeRun({ workload }: { workload: Workload }) {
  const { data: prediction } = usePrediction(workload);
  const { data: answer } = usePredictedAnalysis({ workload });
  const changes = answer?.to_fit ?? [];
  return (
    <div className="mt-0.5">
      {prediction && prediction.left < 0 && (
        <p>
          The whole run needs {formatBytes(-prediction.left)} more: getting past this request alone does not help.
        </p>
      )}
      {changes.length > 0 && (
        <div className="mt-1 flex flex-wrap items-center gap-2">
          <p className="text-xs text-muted">Simulated over the whole run, it fits with any one of these:</p>
          <ul aria-label="Changes that make it fit" className="contents">
            {changes.map((set) => (
              <li key={labelsOf(set.changes)}>
                <Link href={timelineOf({ ...workload, ...patchOf(set.changes) })} className={buttonLook('plain', 'small')}>
                  {labelsOf(set.changes)}, {formatBytes(set.reserved_bytes)}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

const verdicts: Record<string, string> = { yes: 'gets past this request', no: 'does not get past it', maybe: 'may get past it' };

/** Remedies says what the requests up to this one need with other settings of the allocator; the first are the recorded ones. */
function Remedies({ remedies }: { remedies: Schemas['Remedy'][] }) {
  return (
    <ul aria-label="What other settings need up to this request" className="mt-2 flex flex-wrap gap-x-6 gap-y-1 text-xs">
      {remedies.map((r) => (
        <li key={r.settings}>
          <code className="font-mono">{r.settings}</code>{' '}
          <span className={r.helps === 'yes' ? 'text-good-text' : 'text-muted'}>
            needs {formatBytes(r.needs_bytes)}, {verdicts[r.helps] ?? r.helps}
          </span>
        </li>
      ))}
      <li className="basis-full text-muted">That is up to this request. The whole run may need more: what it would have asked for next was not recorded.</li>
    </ul>
  );
}
