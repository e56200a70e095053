import type { Answer, Schemas, Workload } from '../api/client';
import { bytes, rate } from '../format';
import { Button } from '../ui/Button';
import { labelsOf, patchOf } from '../workload/changes';
import { noteAbout } from './notes';

interface Props {
  answer: Answer;
  /** absent where the answer stands */
  onApply?(patch: Partial<Workload>): void;
}

/** ChangesToFit are the fewest changes with which a batch fits that does not, each a click away. */
export function ChangesToFit({ answer, onApply }: Props) {
  const { to_fit: sets } = answer;
  if (answer.current_fits && !sets?.length) return null;
  const note = noteAbout(answer, 'changes');
  if (!sets?.length) return note ? <p className="mt-5 border-t border-line pt-4 text-sm">{note}.</p> : null;
  return (
    <section aria-label="Changes that make it fit" className="mt-5 border-t border-line pt-4">
      <h2 className="text-sm font-semibold">It fits with {sets.length === 1 ? 'this change' : 'any one of these changes'}</h2>
      <ul className="mt-2 divide-y divide-line">
        {sets.map((set) => (
          <Row key={labelsOf(set.changes)} set={set} onApply={onApply && (() => onApply(patchOf(set.changes)))} />
        ))}
      </ul>
    </section>
  );
}

function Row({ set, onApply }: { set: Schemas['ChangeSet']; onApply?: () => void }) {
  const name = labelsOf(set.changes);
  const { tokens_per_second: tokens, samples_per_second: samples } = set;
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2 text-sm">
      <span className="min-w-0 flex-1 basis-60">{name}</span>
      {set.verdict === 'tight' && <span className="text-xs text-warn-text">tight</span>}
      <span className="text-xs text-muted">{bytes(set.reserved_bytes)}</span>
      <span className="w-28 text-right text-xs text-muted">{tokens ? `${rate(tokens)} tokens/s` : samples ? `${rate(samples)} samples/s` : ''}</span>
      {onApply && (
        <Button size="small" aria-label={`Apply ${name}`} onClick={onApply}>
          Apply
        </Button>
      )}
    </li>
  );
}
