import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { useLocation, useSearch } from 'wouter';
import { useCards, useModels } from '../api/queries';
import { Button } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { ErrorBox } from '../ui/ErrorBox';
import { AmountInput, NumberInput, SelectInput, SwitchInput } from '../ui/Inputs';
import { PageTitle } from '../ui/PageTitle';
import { ProgressBar } from '../ui/ProgressBar';
import { describeKeys } from '../workload/describe';
import { type FieldKey, fields } from '../workload/fields';
import { FormPanel } from '../workload/FormPanel';
import { ModelPicker } from '../workload/ModelPicker';
import { samplesOf, titleOf } from '../workload/subject';
import { type QuestionState, useQuestion } from '../workload/useQuestion';
import { PlanResult } from './PlanResult';
import { nameOf, planQuestion, type Terms, termsOf, withTerms } from './terms';
import { type PlanProgress, type PlanState, usePlan } from './usePlan';

/** PlanPage says what to train a model on, and how. */
export default function PlanPage() {
  const state = useQuestion();
  const search = useSearch();
  const [, navigate] = useLocation();
  const terms = termsOf(search);
  const asked = planQuestion(state.settled, terms);
  const made = usePlan(asked, terms.planned === nameOf(asked));
  const setTerms = (next: Terms) => navigate(`/plan?${withTerms(search, next)}`, { replace: true });
  const begin = () => {
    if (made.progress) return;
    const now = planQuestion(state.question, terms); // what is typed may not have settled
    if (terms.planned === nameOf(now)) made.begin();
    else setTerms({ ...terms, planned: nameOf(now) });
  };
  return (
    <>
      <PageTitle title="Plan a run">
        Compares GPUs, their number, parallelism, precision, adapters and batches by cost and by time.
      </PageTitle>
      <div className="grid grid-cols-1 gap-6 lg:grid-cols-[20rem_minmax(0,1fr)] lg:gap-10">
        <FormPanel state={state} without={['gpu', 'batch', 'accumulate', 'parallel']}>
          <PlanForm state={state} terms={terms} onTerms={setTerms} onBegin={begin}>
            <PlanButton made={made} />
          </PlanForm>
        </FormPanel>
        <div className="flex min-w-0 flex-col gap-6">
          {made.problem && <ErrorBox problem={made.problem} title="There is no plan" />}
          {made.progress && <Waiting progress={made.progress} onCancel={made.cancel} />}
          {made.plan && !made.progress && <PlanResult plan={made.plan} pins={terms.pins ?? []} onPins={(pins) => setTerms({ ...terms, pins })} />}
          {!made.plan && !made.problem && !made.progress && <Teaching state={state} onBegin={begin} />}
        </div>
      </div>
    </>
  );
}

function PlanButton({ made }: { made: PlanState }) {
  return (
    <Button type="submit" look="primary" className="w-full" disabled={made.progress !== undefined}>
      {made.plan ? 'Plan again' : 'Plan'}
    </Button>
  );
}

function Teaching({ state, onBegin }: { state: QuestionState; onBegin(): void }) {
  const models = useModels().data?.models ?? [];
  return (
    <Empty title={`What should ${titleOf(state.question.workload, models)} be trained on?`}>
      <p>
        Enter how much you train on. The plan picks the cheapest, the fastest and the simplest of thousands of options, with code to paste.
      </p>
      <Button className="mt-4" onClick={onBegin}>
        Plan it
      </Button>
    </Empty>
  );
}

function Waiting({ progress: { done, of }, onCancel }: { progress: PlanProgress; onCancel(): void }) {
  const percent = of > 0 ? Math.floor((100 * done) / of) : 0;
  return (
    <section aria-label="Progress" className="flex items-center gap-4 rounded-lg border border-line bg-surface p-4 text-sm">
      <div className="min-w-0 flex-1">
        <p className="mb-2 flex flex-wrap justify-between gap-x-4">
          <span role="status">Simulating ways to train it…</span>
          <span className="font-mono text-xs text-muted">{percent} %</span>
        </p>
        <ProgressBar label="How much of the plan is made" value={of > 0 ? done : undefined} max={of} />
      </div>
      <Button look="danger" size="small" onClick={onCancel}>
        Cancel
      </Button>
    </section>
  );
}

interface FormProps {
  state: QuestionState;
  terms: Terms;
  onTerms(terms: Terms): void;
  onBegin(): void;
  children: ReactNode;
}

function PlanForm({ state: { question, change, ask }, terms, onTerms, onBegin, children }: FormProps) {
  const { workload } = question;
  const models = useModels().data?.models ?? [];
  const images = samplesOf(workload, models) === 'vision';
  return (
    <form
      aria-label="Plan"
      onSubmit={(event) => {
        event.preventDefault();
        onBegin();
      }}
      className="flex flex-col gap-5"
    >
      <ModelPicker workload={workload} models={models} onChange={change} />
      <div className="grid grid-cols-2 gap-4">
        {images ? (
          <AmountInput label="Images" unit="images" value={question.run_samples} placeholder="1B" onChange={(run_samples) => ask({ run_samples })} />
        ) : (
          <>
            <AmountInput label="Tokens" unit="tokens" value={question.run_tokens} placeholder="1B" onChange={(run_tokens) => ask({ run_tokens })} />
            <NumberInput label="Sequence" unit="tokens" value={workload.sequence ?? Number(fields.sequence.initial)} onChange={(sequence) => change({ sequence }, 'typing')} />
          </>
        )}
        <NumberInput label="Samples per update" value={question.global_batch} placeholder="64" onChange={(global_batch) => ask({ global_batch })} />
        <NumberInput label="Max GPUs" value={terms.max_gpus} placeholder="64" least={1} onChange={(max_gpus) => onTerms({ ...terms, max_gpus })} />
        <NumberInput label="Max dollars" value={terms.dollars} placeholder="any" step="any" least={0} onChange={(dollars) => onTerms({ ...terms, dollars })} />
        <NumberInput label="Max days" value={terms.days} placeholder="any" step="any" least={0} onChange={(days) => onTerms({ ...terms, days })} />
      </div>
      <SwitchInput label="Train all weights" help="No adapters." value={terms.full === true} onChange={(on) => onTerms({ ...terms, full: on || undefined })} />
      <OwnCards chosen={terms.gpus ?? []} onChange={(gpus) => onTerms({ ...terms, gpus })} />
      <Fixed workload={workload} onChange={change} />
      {children}
    </form>
  );
}

/** OwnCards are the cards to plan with, where one does not rent any. */
function OwnCards({ chosen, onChange }: { chosen: string[]; onChange(gpus: string[]): void }) {
  const cards = useCards().data?.gpus ?? [];
  const left = cards.filter(({ id }) => !chosen.includes(id));
  return (
    <div className="flex flex-col gap-2">
      <SelectInput
        label="Cards I have"
        help="Plan with these cards only."
        value=""
        options={Object.fromEntries([['', chosen.length > 0 ? 'add another' : 'any that can be rented'], ...left.map(({ id, name }) => [id, name])])}
        onChange={(id) => id && onChange([...chosen, id])}
      />
      {chosen.length > 0 && (
        <ul className="flex flex-wrap gap-1.5">
          {chosen.map((id) => (
            <li key={id}>
              <button type="button" aria-label={`Plan without ${id}`} onClick={() => onChange(chosen.filter((each) => each !== id))} className={chip}>
                {cards.find((card) => card.id === id)?.name.replace(/^NVIDIA /, '') ?? id} <X size={12} aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

const chip = 'inline-flex min-h-7 items-center gap-1.5 rounded-full border border-line-strong px-2.5 text-xs hover:bg-raised';

// The keys that were set elsewhere: the plan keeps to them, unless they are left to it.
const fixable: FieldKey[] = ['precision', 'optimizer', 'checkpointing', 'adapter', 'quantize', 'loop', 'attention', 'clip_grad_norm', 'expandable_segments'];

function Fixed({ workload, onChange }: Pick<FormProps['state']['question'], 'workload'> & { onChange: QuestionState['change'] }) {
  const set = fixable.flatMap((key) => {
    const text = describeKeys(workload, [key]);
    return text ? [{ key, text }] : [];
  });
  if (set.length === 0) return <p className="text-xs text-muted">The plan chooses precision, optimizer, checkpointing and adapters.</p>;
  return (
    <div>
      <p className="text-xs text-muted">The plan keeps these settings:</p>
      <ul className="mt-2 flex flex-wrap gap-1.5">
        {set.map(({ key, text }) => (
          <li key={key}>
            <button
              type="button"
              aria-label={`${text}: leave ${fields[key].label} to the plan`}
              onClick={() => onChange({ [key]: undefined })}
              className={chip}
            >
              {text} <X size={12} aria-hidden />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
