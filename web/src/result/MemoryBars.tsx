import { Link } from 'wouter';
import type { Answer, Workload } from '../api/client';
import { bytes, count, percent } from '../format';
import { Evidence } from '../ui/Evidence';
import { Panel } from '../ui/Panel';
import { timelineOf } from '../workload/address';
import { type Batch, batchesOf, type Found } from './batches';

interface Props {
  answer: Answer;
  /** what was asked, to see it over time at each batch */
  workload: Workload;
}

/** MemoryBars shows how full the card is, from today's batch in red to the largest in green. */
export function MemoryBars({ answer, workload }: Props) {
  const flat = flatNote(answer);
  return (
    <Panel title="How full the card is" aside={<Evidence engine={answer.engine} />}>
      {flat && <p className="mb-4 text-sm">{flat}</p>}
      <ul className="flex flex-col gap-5">
        {batchesOf(answer)
          .filter((batch) => batch.found || batch.name !== 'worth using')
          .map((batch) => (
            <Bar key={batch.name} batch={batch} answer={answer} timeline={timelineOf(workload, batch.size)} />
          ))}
      </ul>
      <p className="mt-5 text-xs text-muted">
        Solid is allocated, faint what PyTorch has reserved beyond it; the line is the most that PyTorch may use.
      </p>
    </Panel>
  );
}

/** flatNote says why bars are as long as each other: below some batch another part of the step than the batch's decides. */
export function flatNote(answer: Answer): string {
  const { flat_to_batch: to = 0, flat_phase: phase } = answer;
  const equal = batchesOf(answer).filter(({ size }) => size <= to);
  if (equal.length < 2) return '';
  const what = phase === 'optimizer' ? 'the optimizer step' : `the ${phase} pass`;
  return `Up to batch ${count(to)}, ${what} sets the peak and not the batch: these bars are about equal.`;
}

/** leftOf says what a batch leaves of what PyTorch may use, and whether that is too little to rely on. */
export function leftOf({ reserved_bytes: reserved, verdict }: Found, { limit_bytes: limit, margin_bytes: margin, gpu_total_bytes: total }: Answer): string {
  const left = limit - reserved;
  if (verdict === 'tight') return `Tight: ${bytes(left)} left of ${bytes(limit)}, less than a margin of ${bytes(margin)}`;
  return `${bytes(left)} left, ${percent((100 * left) / total)} of the card`;
}

interface BarProps {
  batch: Batch;
  answer: Answer;
  timeline: string;
}

function Bar({ batch, answer, timeline }: BarProps) {
  const total = answer.gpu_total_bytes;
  const allocated = batch.found?.memory_bytes ?? (batch.name === 'today' ? answer.current_memory_bytes : answer.optimal_memory_bytes);
  const reserved = batch.found?.reserved_bytes ?? allocated;
  const width = (n: number) => `${Math.min(100, (n / total) * 100)}%`;
  return (
    <li>
      <div className="flex flex-wrap items-baseline justify-between gap-x-3 text-sm">
        <span>
          <span className="font-semibold">Batch {count(batch.size)}</span> <span className="text-muted">{batch.name}</span>
        </span>
        <span>
          {bytes(allocated)} <span className="text-muted">of {bytes(total)}</span>
        </span>
      </div>
      <div className="relative mt-1.5 h-3 overflow-hidden rounded-full bg-raised">
        <div className="absolute inset-y-0 left-0 opacity-35 transition-[width] duration-300" style={{ width: width(reserved), background: batch.color }} />
        <div className="absolute inset-y-0 left-0 transition-[width] duration-300" style={{ width: width(allocated), background: batch.color }} />
        <div className="absolute inset-y-0 w-0.5 bg-text" style={{ left: width(answer.limit_bytes) }} />
      </div>
      <p className="mt-1 flex flex-wrap justify-between gap-x-3 text-xs text-muted">
        <span>
          {batch.name === 'today' && !answer.current_fits ? 'Runs out of memory.' : batch.found && leftOf(batch.found, answer)}
        </span>
        <Link href={timeline} className="rounded text-accent-text underline-offset-4 hover:underline" aria-label={`Batch ${count(batch.size)} over time, predicted`}>
          over time
        </Link>
      </p>
    </li>
  );
}
