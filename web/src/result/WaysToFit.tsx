import type { Schemas, Workload } from '../api/client';
import { Problem } from '../api/problem';
import { useFit } from '../api/queries';
import { bytes, count, rate } from '../format';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { Skeleton } from '../ui/Loading';
import { Panel } from '../ui/Panel';
import type { Question } from '../workload/address';
import { labelsOf, patchOf } from '../workload/changes';

type Option = Schemas['Option'];

interface Props {
  question: Question;
  onApply(patch: Partial<Workload>): void;
}

/** WaysToFit are the fewest changes with which a workload fits that does not: one each, or several together. */
export function WaysToFit({ question: { workload, reserve_bytes }, onApply }: Props) {
  const fit = useFit({ workload, reserve_bytes }, !workload.parallel);
  if (workload.parallel || fit.data?.fits) return null;
  const options = fit.data?.options ?? [];
  return (
    <Panel title="Ways to make it fit">
      {fit.isPending && <Skeleton className="h-32" />}
      {fit.error && <ErrorBox problem={Problem.of(fit.error)} title="No ways could be looked for" />}
      {fit.data && <p className="mb-4 text-sm text-muted">{lead(fit.data)}</p>}
      <ul aria-label="Ways to make it fit" className="divide-y divide-line border-t border-line">
        {options.map((option) => (
          <Way key={labelsOf(option.changes)} option={option} onApply={() => onApply(patchOf(option.changes))} />
        ))}
      </ul>
    </Panel>
  );
}

/** lead says what the lines are. */
export function lead({ options, least, batch }: Pick<Schemas['Fit'], 'options' | 'least' | 'batch'>): string {
  const sizes = (options ?? []).map(({ changes }) => changes?.length ?? 0);
  const kept = `An update still has ${count(batch)} samples.`;
  if (sizes.length === 0) return `Nothing that was tried makes it fit this card, alone or combined.${least ? ` The least of it: ${least.reason}.` : ''}`;
  if (Math.max(...sizes) === 1) return `Each of these alone is enough. ${kept}`;
  if (Math.min(...sizes) > 1) return `No single change is enough; each line is what it takes together. ${kept}`;
  return `Each line is enough by itself. ${kept}`;
}

function Way({ option, onApply }: { option: Option; onApply(): void }) {
  const name = labelsOf(option.changes);
  const { tokens_per_second: tokens, samples_per_second: samples } = option.speed;
  const left = bytes(option.memory.limit_bytes - option.memory.reserved_bytes);
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2.5 text-sm">
      <span className="min-w-0 flex-1 basis-60">{name}</span>
      <span className={`text-xs ${option.verdict === 'tight' ? 'text-bad-text' : 'text-muted'}`}>{option.verdict === 'tight' ? `tight, ${left} left` : `${left} left`}</span>
      <span className="text-xs text-muted">{tokens ? `${rate(tokens)} tokens/s` : `${rate(samples)} samples/s`}</span>
      <Button size="small" aria-label={`Apply ${name}`} onClick={onApply}>
        Apply
      </Button>
    </li>
  );
}
