import type { Answer } from '../api/client';
import { bytes, count } from '../format';
import { Evidence } from '../ui/Evidence';
import { Accuracy } from './Accuracy';

// What the page says in other places: in the figures, below the verdict.
const elsewhere = ['recommended', 'changes', 'cost', 'accuracy'];
// What readers should see without opening anything.
const first = ['careful', 'card', 'engine', 'lengths', 'full fine-tuning'];

/** Notes are the sentences of an answer, as the command line has them: those that must be read, or the others. */
export function Notes({ answer: { notes }, open }: { answer: Answer; open: boolean }) {
  const shown = notes?.filter(({ about }) => !elsewhere.includes(about) && first.includes(about) === open) ?? [];
  if (shown.length === 0) return null;
  return (
    <ul aria-label={open ? 'Note' : 'What it means'} className="flex max-w-4xl flex-col gap-1.5 text-sm">
      {shown.map(({ about, text }) => (
        <li key={text} className="sm:grid sm:grid-cols-[7.5rem_minmax(0,1fr)]">
          <span className={`mr-2 ${about === 'careful' || about === 'card' ? 'text-warn-text' : 'text-muted'}`}>{capital(about)}</span>
          <span>{text}</span>
        </li>
      ))}
    </ul>
  );
}

/** Proof is what an answer rests on, folded: versions, limits, sentences to the figures, and how far off such answers were. */
export function Proof({ answer }: { answer: Answer }) {
  return (
    <details className="rounded-lg border border-line bg-surface px-5 py-4 text-sm sm:px-6">
      <summary className="min-h-6 text-muted hover:text-text">
        <Evidence engine={answer.engine} /> {provenance(answer)}
      </summary>
      <div className="mt-4 flex flex-col gap-4">
        <Notes answer={answer} open={false} />
        <MadeUp answer={answer} />
        <Accuracy answer={answer} />
      </div>
    </details>
  );
}

/** MadeUp lists the values that no kernel computed, where an emulated program read them. */
function MadeUp({ answer: { assumed } }: { answer: Answer }) {
  if (!assumed?.length) return null;
  return (
    <details className="max-w-4xl">
      <summary className="text-muted">{assumed.length === 1 ? 'One value was assumed' : `${count(assumed.length)} values were assumed`}</summary>
      <ul aria-label="What was assumed" className="mt-2 flex flex-col gap-1 text-xs">
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

function provenance({ device, engine, provenance: from, limit_bytes, gpu_total_bytes, model_name }: Answer): string {
  const versions = `PyTorch ${from.pytorch}${from.transformers ? ` and transformers ${from.transformers}` : ''}`;
  return (
    `${engine === 'predicted' ? 'for' : 'with'} ${versions}: ${model_name}. ` +
    `PyTorch may use ${bytes(limit_bytes)} of the ${device === 'cuda' ? 'card' : 'machine'}'s ${bytes(gpu_total_bytes)}.`
  );
}
