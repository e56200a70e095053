import type { ReactNode } from 'react';
import type { Prediction, Schemas, Workload } from '../api/client';
import { bytes, count } from '../format';
import { methodName } from '../workload/methods';
import { parallelOf } from '../workload/describe';

export type Decision = Prediction['verdict'];

export const words: Record<Decision, [word: string, look: string]> = {
  fits: ['Yes', 'text-good-text'],
  tight: ['Tight', 'text-warn-text'],
  'does not fit': ['No', 'text-bad-text'],
};

export interface Subject {
  /** the model's name */
  title: string;
  /** the card's name */
  card: string;
  workload: Workload;
  batch: number;
}

interface Props extends Subject {
  verdict: Decision;
  /** of the memory that PyTorch may use; negative for what is missing; absent where a run failed, which does not say */
  left?: number;
  /** what must be left for a yes */
  margin: number;
  children?: ReactNode;
}

/** Verdict answers whether a batch fits: one word, the sentence to it, and what shows it. */
export function Verdict({ verdict, left, margin, children, ...subject }: Props) {
  const [word, look] = words[verdict];
  return (
    <section aria-label="The answer" className="animate-appear rounded-lg border border-line bg-surface p-5 sm:p-6">
      <h1 className="flex flex-wrap items-center gap-x-5 gap-y-2">
        <span className={`text-6xl leading-none font-bold tracking-tight sm:text-7xl ${look}`}>{word}</span>
        <span className="sr-only">: </span>
        <span className="min-w-0 flex-1 basis-80 text-lg leading-snug font-medium text-balance sm:text-xl">{sentence(subject, verdict, left, margin)}</span>
      </h1>
      <div className="mt-5">{children}</div>
    </section>
  );
}

/** sentence says what fits on what, and by how much. */
export function sentence({ title, card, workload, batch }: Subject, verdict: Decision, left: number | undefined, margin: number): string {
  const what = `${capital(methodName(workload))} of ${title} at batch ${count(batch)}`;
  const gpus = parallelOf(workload)?.gpus ?? 1;
  const where = card === 'CPU' ? 'this CPU' : `${count(gpus)} × ${card}`;
  const each = gpus > 1 ? ' on each' : '';
  if (left === undefined) return `${what} does not fit on ${where}.`;
  switch (verdict) {
    case 'fits':
      return `${what} fits on ${where}, with ${bytes(left)} to spare${each}.`;
    case 'tight':
      return `${what} fits on ${where}, with only ${bytes(left)} to spare${each}. Keep ${bytes(margin)} free: a desktop, another driver or a longer batch may need it.`;
    default:
      return left < 0 ? `${what} does not fit on ${where}: ${bytes(-left)} too much${each}.` : `${what} does not fit on ${where}: its memory is too fragmented.`;
  }
}

const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);

/** whyNot says which request failed. */
export function whyNot({ step, phase, requested, allocated, reserved, limit }: Schemas['OutOfMemory']): string {
  const where = step > 0 ? `step ${step}${phase ? `, ${phase}` : ''}` : 'before the first step';
  return `It runs out of memory in ${where}: it asks for ${bytes(requested)} while ${bytes(allocated)} is allocated and ${bytes(reserved)} of ${bytes(limit)} is reserved.`.replace('in before', 'before');
}
