import type { ReactNode } from 'react';
import type { Workload } from '../api/client';
import type { Problem } from '../api/problem';
import { useCards, useModels, useWorkers } from '../api/queries';
import { NumberInput } from '../ui/Inputs';
import { Section } from '../ui/Section';
import { CardPicker } from './CardPicker';
import { describeKeys, describeParallel } from './describe';
import { FieldInput } from './FieldInput';
import { adapters, type FieldKey, first, more, training } from './fields';
import { describeLengths } from './lengths';
import { LengthsFields } from './LengthsFields';
import { MethodInput } from './MethodInput';
import { ModelPicker } from './ModelPicker';
import { ParallelFields } from './ParallelFields';
import { canCheckpoint, cardOf, samplesOf } from './subject';
import type { QuestionState } from './useQuestion';

/** Varied is what a page varies by itself. */
export type Varied = FieldKey | 'model' | 'gpu' | 'parallel';

interface Props {
  state: QuestionState;
  problem: Problem | null;
  without?: Varied[];
}

/** WorkloadForm says what is trained and on which card. */
export function WorkloadForm({ state, problem, without = [] }: Props) {
  const { question, change } = state;
  const { workload } = question;
  const models = useModels().data?.models ?? [];
  const cards = useCards().data;
  const card = cardOf(workload, cards);
  const workers = useWorkers().data?.workers ?? [];
  const images = samplesOf(workload, models) === 'vision';
  const left = [...(images ? ['sequence', 'attention_mask'] : ['image', 'channels_last']), ...(canCheckpoint(workload, models) ? [] : ['checkpointing'])];
  const shown = (keys: FieldKey[]) => keys.filter((key) => !left.includes(key) && !without.includes(key));
  const wrong = (key: string) => wrongOf(problem, key);
  const section = (title: string, all: FieldKey[], children?: ReactNode, also = '') => {
    const keys = shown(all);
    if (keys.length === 0) return null;
    return (
      <Section title={title} set={[describeKeys(workload, keys), also].filter(Boolean).join(', ')} wrong={keys.some(wrong)}>
        <div className="grid grid-cols-2 gap-4 [&>:has([role=switch])]:col-span-2">{keys.map(input)}</div>
        {children}
      </Section>
    );
  };
  const input = (key: FieldKey) => (
    <FieldInput key={key} name={key} workload={workload} card={card} wrong={wrong(key)} onChange={change} />
  );
  return (
    <form aria-label="Workload" onSubmit={(event) => event.preventDefault()} className="flex flex-col gap-5">
      {!without.includes('model') && <ModelPicker workload={workload} models={models} onChange={change} />}
      {!without.includes('gpu') && (
        <CardPicker card={card} cards={cards} workers={workers} onChoose={(gpu) => change({ gpu })} />
      )}
      {!without.includes('model') && !without.includes('adapter') && <MethodInput workload={workload} models={models} card={card} onChange={change} />}
      <div className="grid grid-cols-2 gap-4 [&>:has([role=switch])]:col-span-2">{shown(first).map(input)}</div>
      <div className="border-b border-line">
        {section('Adapters and 4-bit', adapters)}
        {section('Optimizer and loop', training)}
        {!without.includes('parallel') && (
          <Section title="Several GPUs" set={describeParallel(workload)} wrong={Boolean(wrong('parallel'))}>
            <ParallelFields workload={workload} models={models} wrong={wrong('parallel')} onChange={change} />
          </Section>
        )}
        {!images && (
          <Section title="Lengths of samples" set={workload.lengths ? describeLengths(workload.lengths) : ''} wrong={Boolean(wrong('lengths') || wrong('packing'))}>
            <LengthsFields workload={workload} wrong={wrong('lengths') ?? wrong('packing')} onChange={change} />
          </Section>
        )}
        {section('More settings', more, <Beside state={state} problem={problem} />, besideText(question))}
      </div>
    </form>
  );
}

// What is asked in addition to the workload: how a batch must be, and what must stay free.
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

function besideText({ workload, global_batch, multiple_of, reserve_bytes }: QuestionState['question']): string {
  const said: [Workload['limit_gib'], string][] = [
    [global_batch, `global batch ${global_batch}`],
    [multiple_of, `multiples of ${multiple_of}`],
    [reserve_bytes, 'memory kept free'],
    [workload.limit_gib, `${workload.limit_gib} GiB`],
  ];
  return said.flatMap(([value, text]) => (value === undefined ? [] : text)).join(', ');
}

function wrongOf(problem: Problem | null, key: string): string | undefined {
  return problem?.details.find((detail) => detail.key === key)?.message;
}
