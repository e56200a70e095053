import type { Answer, Schemas, Workload } from '../api/client';
import { usePredictedAnalysis } from '../api/queries';
import { count, rate } from '../format';
import { Button } from '../ui/Button';
import { Evidence } from '../ui/Evidence';
import { Skeleton } from '../ui/Loading';
import { Panel } from '../ui/Panel';
import type { Question } from '../workload/address';
import { patchOf } from '../workload/changes';

interface Props {
  question: Question;
  answer: Answer;
  onApply(patch: Partial<Workload>): void;
}

/** Changes says what each single change would do, and makes one at a click. */
export function Changes({ question, answer, onApply }: Props) {
  const query = usePredictedAnalysis({ ...question, changes: true });
  const changes = query.data?.changes;
  const now = answer.results?.find((result) => result.batch_size === answer.optimal_batch_size);
  return (
    <Panel title="What one change would do" aside={<Evidence engine="predicted" />}>
      {changes ? (
        <div className={query.isPlaceholderData ? 'opacity-60' : ''}>
          <table className="w-full text-sm">
            <thead className="text-xs text-muted">
              <tr>
                <th scope="col" className="pb-2 text-left font-normal">
                  Change
                </th>
                <th scope="col" className="pb-2 text-right font-normal">
                  Largest batch
                </th>
                <th scope="col" className="hidden pb-2 pl-4 text-right font-normal sm:table-cell">
                  Samples/s
                </th>
                <th scope="col" className="w-20">
                  <span className="sr-only">Apply</span>
                </th>
              </tr>
            </thead>
            <tbody>
              <tr className="border-t border-line text-muted">
                <th scope="row" className="py-2 text-left font-normal">
                  None
                </th>
                <td className="py-2 text-right">{count(answer.optimal_batch_size)}</td>
                <td className="hidden py-2 pl-4 text-right sm:table-cell">{now?.samples_per_second ? rate(now.samples_per_second) : ''}</td>
                <td />
              </tr>
              {changes.map((change) => (
                <Row key={change.label} change={change} base={answer.optimal_batch_size} speed={now?.samples_per_second} onApply={onApply} />
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Skeleton className="h-56" />
      )}
    </Panel>
  );
}

interface RowProps {
  change: Schemas['Effect'];
  base: number;
  speed?: number;
  onApply(patch: Partial<Workload>): void;
}

function Row({ change, base, speed, onApply }: RowProps) {
  const name = change.label;
  return (
    <tr className="border-t border-line">
      <th scope="row" className="py-2 pr-3 text-left font-normal">
        {name}
        {change.error && <span className="block text-xs text-bad-text">{change.error}</span>}
      </th>
      <td className={`py-2 text-right ${tone(change.optimal_batch_size, base)}`}>{change.error ? '' : count(change.optimal_batch_size)}</td>
      <td className={`hidden py-2 pl-4 text-right sm:table-cell ${tone(change.samples_per_second ?? 0, speed ?? 0)}`}>
        {change.samples_per_second ? rate(change.samples_per_second) : ''}
      </td>
      <td className="py-2 pl-3 text-right">
        {isWorth(change, base, speed) && (
          <Button size="small" aria-label={`Apply ${name}`} onClick={() => onApply(patchOf([change]))}>
            Apply
          </Button>
        )}
      </td>
    </tr>
  );
}

/** isWorth reports whether a change gains something: a larger batch, or more speed. */
export function isWorth(change: Schemas['Effect'], base: number, speed = 0): boolean {
  return !change.error && (isMore(change.optimal_batch_size, base) || isMore(change.samples_per_second ?? 0, speed));
}

const isMore = (value: number, base: number) => value > base * 1.02;

// tone is green for what is clearly more, red for what is clearly less.
function tone(value: number, base: number): string {
  if (isMore(value, base)) return 'text-accent-text';
  if (value < base * 0.98) return 'text-bad-text';
  return '';
}
