import type { ReactNode } from 'react';
import type { Answer } from '../api/client';
import { bytes, count, dollars, factor, price, rate } from '../format';
import { yoursOf } from './batches';
import { noteAbout } from './notes';

const gain = 1.02; // what is less is no gain worth a tile

/** Figures are what follows from the verdict: how fast, how dear, and which batch would be better. */
export function Figures({ answer }: { answer: Answer }) {
  const { bill, speedup = 0, cost_savings_annual: saving = 0, recommended_batch_size: recommended } = answer;
  if (answer.optimal_batch_size === 0) return null;
  const million = bill?.usd_per_million_tokens ?? bill?.usd_per_million_samples;
  const speed = bill?.tokens_per_second ?? bill?.samples_per_second;
  const now = bill?.batch_size === answer.current_batch_size ? undefined : yoursOf(answer);
  const yours = now?.tokens_per_second ?? now?.samples_per_second;
  const unit = bill?.tokens_per_second === undefined ? 'samples' : 'tokens';
  return (
    <dl aria-label="Figures" className="flex flex-wrap gap-px overflow-hidden rounded-lg border border-line bg-line">
      {bill && speed !== undefined && (
        <Figure name="Speed" value={rate(speed)}>
          {unit}/s at batch {count(bill.batch_size)}
          {yours && `; ${rate(yours)} at yours`}
        </Figure>
      )}
      {bill && million !== undefined && million > 0 && (
        <Figure name="Cost" value={price(million)}>
          a million {unit} at batch {count(bill.batch_size)}
        </Figure>
      )}
      {recommended !== undefined && recommended !== answer.current_batch_size && (
        <Figure name="Recommended batch" value={count(recommended)}>
          {noteAbout(answer, 'recommended')}
        </Figure>
      )}
      <Figure name="Largest batch" value={count(answer.optimal_batch_size)}>
        {bytes(answer.optimal_memory_bytes)} at its peak
      </Figure>
      {speedup >= gain && (
        <Figure name="Potential speed-up" value={factor(speedup)}>
          {saving > 0 ? `saves ${dollars(saving)} in ${count(answer.hours_per_year)} GPU-hours` : 'with the largest batch'}
        </Figure>
      )}
    </dl>
  );
}

function Figure({ name, value, children }: { name: string; value: string; children: ReactNode }) {
  return (
    <div className="flex min-w-0 flex-1 basis-36 flex-col gap-0.5 bg-surface p-4">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="text-xl font-semibold tracking-tight">{value}</dd>
      <dd className="text-xs text-muted">{children}</dd>
    </div>
  );
}
