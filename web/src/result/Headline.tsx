import type { ReactNode } from 'react';
import type { Answer } from '../api/client';
import { article, bytes, count, dollars, factor, percent } from '../format';
import { Evidence } from '../ui/Evidence';
import { Accuracy } from './Accuracy';

/** Headline is the answer in a sentence, and the four figures that people came for. */
export function Headline({ answer }: { answer: Answer }) {
  return (
    <section aria-label="The answer" className="animate-appear">
      <h1 className="max-w-4xl text-2xl leading-snug font-semibold tracking-tight text-balance sm:text-[2rem]">
        Batch <span className="text-accent-text">{count(answer.optimal_batch_size)}</span> trains on {article(answer.gpu_name)}; {usage(answer)}
      </h1>
      <p className="mt-2 text-sm text-muted">
        <Evidence engine={answer.engine} /> {provenance(answer)}
      </p>
      {/* As many tiles as there are figures: they share each row. */}
      <dl className="mt-6 flex flex-wrap gap-px overflow-hidden rounded-lg border border-line bg-line">
        <Figure name="Largest batch" value={count(answer.optimal_batch_size)}>
          {bytes(answer.optimal_memory_bytes)} at its peak
        </Figure>
        {answer.recommended_batch_size && (
          <Figure name="Worth using" value={count(answer.recommended_batch_size)}>
            {noteAbout(answer, 'recommended')}
          </Figure>
        )}
        {answer.speedup && answer.optimal_batch_size !== answer.current_batch_size && (
          <Figure name="Speed to gain" value={factor(answer.speedup)}>
            largest against today's batch
          </Figure>
        )}
        {answer.cost_savings_annual !== undefined && (
          <Figure name="To save in a year" value={dollars(answer.cost_savings_annual)}>
            in {count(answer.hours_per_year)} GPU-hours
          </Figure>
        )}
      </dl>
      <Notes answer={answer} />
      <MadeUp answer={answer} />
      <div className="mt-4">
        <Accuracy answer={answer} />
      </div>
    </section>
  );
}

// What the page says in other places: in the figures, under the ways to make it fit, at the end.
const elsewhere = ['recommended', 'changes', 'cost', 'accuracy'];

/** Notes are the sentences of an answer, as the command line has them. */
function Notes({ answer: { notes } }: { answer: Answer }) {
  const shown = notes?.filter(({ about }) => !elsewhere.includes(about)) ?? [];
  if (shown.length === 0) return null;
  return (
    <ul aria-label="What it means" className="mt-5 flex max-w-4xl flex-col gap-1.5 text-sm">
      {shown.map(({ about, text }) => (
        <li key={text} className="sm:grid sm:grid-cols-[7.5rem_minmax(0,1fr)]">
          <span className={`mr-2 ${about === 'careful' || about === 'card' ? 'text-warn-text' : 'text-muted'}`}>{capital(about)}</span>
          <span>{text}</span>
        </li>
      ))}
    </ul>
  );
}

/** MadeUp lists the values that no kernel computed, where an emulated program read them. */
function MadeUp({ answer: { assumed } }: { answer: Answer }) {
  if (!assumed?.length) return null;
  return (
    <details className="mt-4 max-w-4xl text-sm">
      <summary className="cursor-pointer text-muted">{assumed.length === 1 ? 'One value was made up' : `${count(assumed.length)} values were made up`}</summary>
      <ul aria-label="What was made up" className="mt-2 flex flex-col gap-1 text-xs">
        {assumed.map(({ function: name, where, assumed: value, times }) => (
          <li key={`${name} ${where} ${value}`} className="break-all">
            {value} for <code className="font-mono">{name}</code> at <code className="font-mono">{where}</code>, {count(times)} ×
          </li>
        ))}
      </ul>
    </details>
  );
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

/** noteAbout is the sentence of an answer about something, '' if there is none. */
export function noteAbout({ notes }: Answer, wanted: string): string {
  return notes?.find(({ about }) => about === wanted)?.text ?? '';
}

function Figure({ name, value, children }: { name: string; value: string; children: ReactNode }) {
  return (
    <div className="flex min-w-0 flex-1 basis-36 flex-col gap-1 bg-surface p-4 sm:p-5">
      <dt className="text-xs text-muted">{name}</dt>
      <dd className="text-2xl font-semibold tracking-tight sm:text-3xl">{value}</dd>
      <dd className="text-xs text-muted">{children}</dd>
    </div>
  );
}

/** usage says how much of the card today's batch uses, as the command line does. */
function usage(answer: Answer): string {
  if (!answer.current_fits) return `your batch of ${count(answer.current_batch_size)} does not.`;
  return `with batch ${count(answer.current_batch_size)} you use ${percent(100 - answer.current_waste_percent)} of it.`;
}

function provenance({ device, engine, provenance: from, limit_bytes, gpu_total_bytes, model_name }: Answer): string {
  const versions = `PyTorch ${from.pytorch}${from.transformers ? ` and transformers ${from.transformers}` : ''}`;
  return (
    `${engine === 'predicted' ? 'for' : 'with'} ${versions}: ${model_name}. ` +
    `PyTorch may use ${bytes(limit_bytes)} of the ${device === 'cuda' ? 'card' : 'machine'}'s ${bytes(gpu_total_bytes)}.`
  );
}
