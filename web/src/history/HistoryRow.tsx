import { useQueryClient } from '@tanstack/react-query';
import { RotateCcw, Trash2 } from 'lucide-react';
import { Link } from 'wouter';
import { type Analysis, answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { useCards, useModels } from '../api/queries';
import { ended } from '../api/watch';
import { moment } from '../format';
import { Button } from '../ui/Button';
import { addressOf } from '../workload/address';
import { type FieldKey, fields } from '../workload/fields';
import { asAsked, titleOf } from '../workload/subject';
import { StateBadge } from './StateBadge';

/** HistoryRow is one analysis of the list. */
export function HistoryRow({ analysis, onFailure }: { analysis: Analysis; onFailure(problem: Problem): void }) {
  const models = useModels().data?.models ?? [];
  const card = useCards().data?.gpus?.find(({ id }) => id === analysis.gpu);
  const queries = useQueryClient();
  const workload = asAsked(analysis.workload ?? {}, models);
  const title = titleOf(workload, models);

  async function remove() {
    try {
      await answer(api.DELETE('/v1/analyses/{id}', { params: { path: { id: analysis.id }, query: { forget: true } } }));
      await queries.invalidateQueries({ queryKey: ['history'] });
    } catch (error) {
      onFailure(Problem.of(error));
    }
  }

  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1 px-4 py-3 sm:gap-x-4 sm:px-5">
      <Link href={`/history/${analysis.id}`} className="min-w-0 flex-1 basis-full rounded hover:text-accent-text sm:basis-60">
        <span className="block truncate font-medium">
          {title} <span className="font-normal text-muted">on {card?.name ?? analysis.gpu}</span>
        </span>
        <span className="block truncate text-xs text-muted">{settingsOf(analysis)}</span>
      </Link>
      <span className="w-16 text-xs text-muted">{analysis.engine}</span>
      <span className="w-20">
        <StateBadge state={analysis.state} />
      </span>
      <time dateTime={analysis.queued} className="text-xs text-muted sm:w-28">
        {moment(analysis.queued)}
      </time>
      <span className="ml-auto flex gap-1">
        <Link
          href={`/?${addressOf({ workload })}`}
          aria-label={`Repeat ${title}`}
          title="Repeat"
          className="inline-flex rounded px-2.5 py-1.5 text-muted hover:bg-raised hover:text-text"
        >
          <RotateCcw size={14} aria-hidden />
        </Link>
        <Button
          look="quiet"
          size="small"
          disabled={!ended(analysis)}
          aria-label={`Delete ${title}`}
          title={ended(analysis) ? 'Delete' : 'Cancel it first'}
          onClick={() => void remove()}
        >
          <Trash2 size={14} aria-hidden />
        </Button>
      </span>
    </li>
  );
}

// settingsOf is what is special about a workload, in the words of the form.
function settingsOf({ workload }: Analysis): string {
  return Object.entries(fields)
    .filter(([key, field]) => key === 'batch' || ((workload?.[key as FieldKey] ?? field.initial) !== field.initial))
    .map(([key, field]) => {
      const value = workload?.[key as FieldKey] ?? field.initial;
      if (field.kind === 'choice') return field.options[String(value)] ?? String(value);
      return field.kind === 'switch' ? field.label.toLowerCase() : `${key} ${String(value)}`;
    })
    .join(', ');
}
