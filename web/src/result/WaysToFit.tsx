import type { Schemas, Workload } from '../api/client';
import { Problem } from '../api/problem';
import { useFit, useModels } from '../api/queries';
import { count, rate } from '../format';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { Skeleton } from '../ui/Loading';
import { Panel } from '../ui/Panel';
import type { Question } from '../workload/address';
import { asAsked } from '../workload/subject';

type Option = Schemas['Option'];

interface Props {
  question: Question;
  onApply(workload: Workload): void;
}

/** WaysToFit are the fewest changes with which a workload fits that does not: one each, or several together. */
export function WaysToFit({ question: { workload, reserve_bytes }, onApply }: Props) {
  const fit = useFit({ workload, reserve_bytes }, !workload.parallel);
  const models = useModels().data?.models ?? [];
  if (workload.parallel || fit.data?.fits) return null;
  const options = fit.data?.options ?? [];
  return (
    <Panel title="Ways to make it fit">
      {fit.isPending && <Skeleton className="h-32" />}
      {fit.error && <ErrorBox problem={Problem.of(fit.error)} title="No ways could be looked for" />}
      {fit.data && <p className="mb-4 text-sm text-muted">{lead(fit.data)}</p>}
      <ul aria-label="Ways to make it fit" className="divide-y divide-line border-t border-line">
        {options.map((option) => (
          <Way key={option.changes?.join(' ')} option={option} onApply={() => onApply(asAsked(option.workload, models))} />
        ))}
      </ul>
    </Panel>
  );
}

function lead({ options, least, batch }: Schemas['Fit']): string {
  const most = Math.max(0, ...(options ?? []).map(({ changes }) => changes?.length ?? 0));
  const kept = `An update still has ${count(batch)} samples.`;
  if (most === 0) return `Nothing that was tried makes it fit this card, alone or combined.${least ? ` The least of it: ${least.reason}.` : ''}`;
  return most === 1 ? `Each of these alone is enough. ${kept}` : `No single change is enough; each line is what it takes together. ${kept}`;
}

function Way({ option, onApply }: { option: Option; onApply(): void }) {
  const name = option.changes?.join(' + ') ?? option.setup;
  const { tokens_per_second: tokens, samples_per_second: samples } = option.speed;
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2.5 text-sm">
      <span className="min-w-0 flex-1 basis-60">{name}</span>
      <span className="text-xs text-muted">{tokens ? `${rate(tokens)} tokens/s` : `${rate(samples)} samples/s`}</span>
      <Button size="small" aria-label={`Apply ${name}`} onClick={onApply}>
        Apply
      </Button>
    </li>
  );
}
