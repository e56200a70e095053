import type { Schemas } from '../api/client';
import { Button } from '../ui/Button';
import { formatBytes, formatCount } from './format';

interface Props {
  failure: Schemas['FailureInfo'];
  onGo(event: number): void;
}

/** FailureBox says why memory ran out, and what gets past it. */
export function FailureBox({ failure, onGo }: Props) {
  const why = failure.explanation;
  const place = failure.made_by.user_frame ?? failure.made_by.model_frame;
  return (
    <section aria-label="Out of memory" className="rounded-lg border border-bad/40 bg-bad-soft px-4 py-3 text-sm">
      <div className="flex flex-wrap items-baseline gap-x-4 gap-y-1">
        <h2 className="font-semibold text-bad-text">Out of memory at event {formatCount(failure.event)}</h2>
        <p className="min-w-0 flex-1 basis-72">
          {formatBytes(failure.asked_bytes)} was requested with {formatBytes(failure.live_bytes)} in use
          {why && (
            <>
              ; {formatBytes(why.reserved_bytes)} was reserved, {formatBytes(why.free_bytes)} of it free in {formatCount(why.free_pieces)} pieces, the largest{' '}
              {formatBytes(why.largest_free_bytes)}
            </>
          )}
          .{' '}
          {place && (
            <code className="font-mono text-xs text-muted">
              {place.file}:{place.line} {place.function}
            </code>
          )}
        </p>
        <Button size="small" onClick={() => onGo(failure.event)} title="Go to the out-of-memory error (o)">
          Show
        </Button>
      </div>
      {why?.remedies && why.remedies.length > 0 && <Remedies remedies={why.remedies} />}
    </section>
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
          <span className={r.helps === 'yes' ? 'text-accent-text' : 'text-muted'}>
            needs {formatBytes(r.needs_bytes)}, {verdicts[r.helps] ?? r.helps}
          </span>
        </li>
      ))}
      <li className="basis-full text-muted">The whole run may need more: what it would have requested next is not recorded.</li>
    </ul>
  );
}
