import { Link } from 'wouter';
import type { Schemas } from '../api/client';
import { moment } from '../format';
import { Drain } from './Drain';
import { type State, stateOf } from './state';

const looks: Record<State, string> = {
  lost: 'bg-bad-soft text-bad-text',
  draining: 'bg-warn-soft text-warn-text',
  drained: 'bg-warn-soft text-warn-text',
  busy: 'bg-raised text-info-text',
  ready: 'bg-accent-soft text-accent-text',
};

interface Props {
  worker: Schemas['Worker'];
  /** seconds of silence after which a worker counts as lost */
  lease: number;
  now: number;
}

/** WorkerCard is a worker: its state, its cards and what runs on them. */
export function WorkerCard({ worker, lease, now }: Props) {
  const state = stateOf(worker, lease, now);
  return (
    <li className="flex flex-col rounded-lg border border-line bg-surface p-5">
      <div className="flex flex-wrap items-center justify-between gap-2">
        <h2 className="font-semibold">{worker.host}</h2>
        <span className={`rounded-full px-2.5 py-0.5 text-xs ${looks[state]}`}>{state}</span>
      </div>
      <p className="mt-0.5 text-xs break-all text-muted">
        {worker.id}
        {worker.version && `, ${worker.version}`}
      </p>
      <ul className="mt-4 divide-y divide-line border-y border-line text-sm">
        {worker.cards?.map((card, index) => (
          // Two cards of one kind differ by their place alone.
          // oxlint-disable-next-line react/no-array-index-key
          <li key={`${card.id} ${index}`} className="flex items-center justify-between gap-3 py-2">
            <span>
              {card.name ?? card.id} {card.name && card.name !== card.id && <span className="text-xs text-muted">{card.id}</span>}
            </span>
            {card.job ? (
              <Link href={`/history/${card.job}`} className="text-xs text-accent-text underline underline-offset-4">
                busy
              </Link>
            ) : (
              <span className="text-xs text-muted">free</span>
            )}
          </li>
        ))}
      </ul>
      <div className="mt-auto flex flex-wrap items-center justify-between gap-x-4 gap-y-2 pt-3">
        <p className="text-xs text-muted">
          {worker.since && `Connected since ${moment(worker.since)}`}
          {worker.seen && `, last seen at ${moment(worker.seen)}`}
        </p>
        {state !== 'lost' && <Drain worker={worker} />}
      </div>
    </li>
  );
}
