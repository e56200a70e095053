import { useCards, useModels, useWorkers } from '../api/queries';
import { CardPicker } from '../workload/CardPicker';
import { MethodInput } from '../workload/MethodInput';
import { ModelPicker } from '../workload/ModelPicker';
import { cardOf } from '../workload/subject';
import type { QuestionState } from '../workload/useQuestion';

/** AskLine is the question that the page answers, with what most people change of it. */
export function AskLine({ state: { question, change, isExample } }: { state: QuestionState }) {
  const { workload } = question;
  const models = useModels().data?.models ?? [];
  const cards = useCards().data;
  const card = cardOf(workload, cards);
  return (
    <form aria-label="Question" onSubmit={(event) => event.preventDefault()} className="mb-4 print:hidden lg:mb-6">
      <p className="mb-3 flex flex-wrap items-baseline gap-x-3">
        <span className="text-xl font-semibold tracking-tight">Will it fit?</span>
        {isExample && <span className="text-sm text-muted">This is an example. Choose what you train, and on what.</span>}
      </p>
      <div className="grid grid-cols-2 gap-x-3 gap-y-4 max-lg:*:last:col-span-2 lg:grid-cols-[minmax(0,1.2fr)_minmax(0,1fr)_15rem]">
        <ModelPicker workload={workload} models={models} onChange={change} />
        <CardPicker card={card} cards={cards} workers={useWorkers().data?.workers ?? []} onChoose={(gpu) => change({ gpu })} />
        <MethodInput workload={workload} models={models} card={card} onChange={change} />
      </div>
    </form>
  );
}
