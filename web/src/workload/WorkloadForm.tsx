import { ChevronRight } from 'lucide-react';
import { type ReactNode, useState } from 'react';
import type { Workload } from '../api/client';
import type { Problem } from '../api/problem';
import { useCards, useModels, useWorkers } from '../api/queries';
import { NumberInput, SelectInput, SwitchInput } from '../ui/Inputs';
import { CardPicker } from './CardPicker';
import { type FieldKey, fields, first, more } from './fields';
import { ModelPicker } from './ModelPicker';
import { cardOf, samplesOf } from './subject';
import type { QuestionState } from './useQuestion';

interface Props {
  state: QuestionState;
  problem: Problem | null;
  /** keys that the page varies by itself */
  without?: (FieldKey | 'gpu')[];
}

/** WorkloadForm says what is trained and on which card. */
export function WorkloadForm({ state, problem, without = [] }: Props) {
  const { question, change } = state;
  const { workload } = question;
  const models = useModels().data?.models ?? [];
  const cards = useCards().data;
  const workers = useWorkers().data?.workers ?? [];
  const left = samplesOf(workload, models) === 'vision' ? ['sequence', 'attention_mask'] : ['image'];
  const shown = (keys: FieldKey[]) => keys.filter((key) => !left.includes(key) && !without.includes(key));
  const input = (key: FieldKey) => (
    <FieldInput key={key} name={key} workload={workload} wrong={wrongOf(problem, key)} onChange={change} />
  );
  return (
    <form aria-label="Workload" onSubmit={(event) => event.preventDefault()} className="flex flex-col gap-5">
      <ModelPicker workload={workload} models={models} onChange={change} />
      {!without.includes('gpu') && (
        <CardPicker card={cardOf(workload, cards)} cards={cards} workers={workers} onChoose={(gpu) => change({ gpu })} />
      )}
      <div className="grid grid-cols-2 gap-4 [&>:has([role=switch])]:col-span-2">{shown(first).map(input)}</div>
      <More changed={changedKeys(workload, shown(more)) + besideCount(question)}>
        <div className="grid grid-cols-2 gap-4 [&>:has([role=switch])]:col-span-2">{shown(more).map(input)}</div>
        <Beside state={state} problem={problem} />
      </More>
    </form>
  );
}

function More({ changed, children }: { changed: number; children: ReactNode }) {
  const [open, setOpen] = useState(changed > 0);
  return (
    <div className="border-t border-line pt-4">
      <button
        type="button"
        aria-expanded={open}
        aria-controls="more"
        onClick={() => setOpen(!open)}
        className="flex w-full items-center gap-1.5 rounded text-sm text-muted hover:text-text"
      >
        <ChevronRight size={14} aria-hidden className={`transition-transform ${open ? 'rotate-90' : ''}`} />
        More settings
        {changed > 0 && <span className="ml-auto text-xs text-accent-text">{changed} changed</span>}
      </button>
      {open && (
        <div id="more" className="mt-4 flex animate-appear flex-col gap-4">
          {children}
        </div>
      )}
    </div>
  );
}

interface FieldInputProps {
  name: FieldKey;
  workload: Workload;
  wrong: string | undefined;
  onChange: QuestionState['change'];
}

function FieldInput({ name, workload, wrong, onChange }: FieldInputProps) {
  const field = fields[name];
  const value = workload[name] ?? field.initial;
  const common = { label: field.label, help: field.help, wrong };
  switch (field.kind) {
    case 'choice':
      return <SelectInput {...common} value={String(value)} options={field.options} onChange={(next) => onChange({ [name]: next })} />;
    case 'switch':
      return <SwitchInput {...common} value={value === true} onChange={(next) => onChange({ [name]: next })} />;
    default:
      return (
        <NumberInput {...common} value={Number(value)} unit={field.unit} min={1} onChange={(next) => onChange({ [name]: next }, 'typing')} />
      );
  }
}

// What is asked beside the workload: how a batch must be, and what must stay free.
function Beside({ state: { question, change, ask }, problem }: Pick<Props, 'state' | 'problem'>) {
  return (
    <div className="grid grid-cols-2 gap-4">
      <NumberInput
        label="Global batch"
        help="Samples per optimizer step, split into batches that fit."
        value={question.global_batch}
        placeholder="any"
        onChange={(global_batch) => ask({ global_batch })}
      />
      <NumberInput
        label="Multiple of"
        help="Consider only multiples of this number."
        value={question.multiple_of}
        placeholder="1"
        onChange={(multiple_of) => ask({ multiple_of })}
      />
      <NumberInput
        label="Keep free"
        help="Memory to keep free in addition to the CUDA context."
        value={question.reserve_bytes === undefined ? undefined : question.reserve_bytes / mebi}
        unit="MiB"
        placeholder="0"
        onChange={(mib) => ask({ reserve_bytes: mib === undefined ? undefined : Math.round(mib * mebi) })}
      />
      <NumberInput
        label="PyTorch may use"
        help="Maximum memory that the allocator may reserve. Default: the card's memory minus the CUDA context."
        value={question.workload.limit_gib}
        unit="GiB"
        step="any"
        placeholder="all"
        wrong={wrongOf(problem, 'limit_gib')}
        onChange={(limit_gib) => change({ limit_gib }, 'typing')}
      />
    </div>
  );
}

const mebi = 2 ** 20;

function changedKeys(workload: Workload, keys: FieldKey[]): number {
  return keys.filter((key) => workload[key] !== undefined && workload[key] !== fields[key].initial).length;
}

function besideCount({ workload, global_batch, multiple_of, reserve_bytes }: QuestionState['question']): number {
  return [workload.limit_gib, global_batch, multiple_of, reserve_bytes].filter((value) => value !== undefined).length;
}

function wrongOf(problem: Problem | null, key: string): string | undefined {
  return problem?.details.find((detail) => detail.key === key)?.message;
}
