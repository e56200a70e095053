import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation, useParams } from 'wouter';
import { type Analysis, answer, api, type Model, type Schemas } from '../api/client';
import { Problem } from '../api/problem';
import { useCards, useModels } from '../api/queries';
import { ended, useWatch } from '../api/watch';
import { Run } from '../analyze/Run';
import { CopyAs } from '../result/CopyAs';
import { KeptResult } from '../result/KeptResult';
import { ErrorBox } from '../ui/ErrorBox';
import { Loading } from '../ui/Loading';
import { PageTitle } from '../ui/PageTitle';
import { useTitle } from '../ui/useTitle';
import { addressOf } from '../workload/address';
import { CodeDialog } from '../workload/CodeDialog';
import { parallelOf } from '../workload/describe';
import { type ChoiceField, fields } from '../workload/fields';
import { methodName } from '../workload/methods';
import { asAsked, cardOf, isOwnCode, samplesOf, titleOf } from '../workload/subject';
import { nameOf } from './HistoryTable';

const link = 'text-accent-text underline underline-offset-4';

/** AnalysisPage is one analysis of the history, live while it runs. */
export default function AnalysisPage() {
  const { id = '' } = useParams();
  const [, navigate] = useLocation();
  const [repeating, setRepeating] = useState(false);
  const kept = useQuery({
    queryKey: ['history', id],
    queryFn: ({ signal }) => answer(api.GET('/v1/analyses/{id}', { params: { path: { id } }, signal })),
  });
  const watched = useWatch(kept.data ? id : undefined);
  const models = useModels().data?.models ?? [];
  const cards = useCards().data;
  const analysis = watched.analysis ?? kept.data;
  useTitle(analysis ? aboutOf(analysis, models, cards) : 'Analysis');
  if (kept.error) {
    return (
      <>
        <PageTitle title="Analysis" />
        <ErrorBox problem={Problem.of(kept.error)} title="This analysis cannot be shown" />
      </>
    );
  }
  if (!analysis) return <Loading what="the analysis" />;
  const workload = asAsked(analysis.workload ?? {}, models);
  const title = nameOf(analysis, titleOf(workload, models));
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <p className="text-sm">
        <Link href="/history" className="text-muted hover:text-text">
          History
        </Link>
        <span className="px-2 text-faint">/</span>
        {isOwnCode(workload) ? (
          <button type="button" className={link} onClick={() => setRepeating(true)}>
            Repeat with changes
          </button>
        ) : (
          <Link href={`/?${addressOf({ workload })}`} className={link}>
            Repeat with changes
          </Link>
        )}
      </p>
      <CodeDialog open={repeating} workload={workload} onClose={() => setRepeating(false)} />
      <p className="text-sm text-muted">{aboutOf(analysis, models, cards)}</p>
      {!analysis.answer && <h1 className="text-2xl font-semibold tracking-tight">{ended(analysis) ? 'No answer' : 'In progress'}</h1>}
      {analysis.answer && <KeptResult answer={analysis.answer} workload={workload} title={title} />}
      {analysis.answer && <CopyAs question={{ workload }} answer={analysis.answer} />}
      <Run id={id} watched={watched} onClose={() => navigate('/history')} />
    </div>
  );
}

/** aboutOf says what an analysis is of: model, method, card, precision and length. */
function aboutOf(analysis: Analysis, models: Model[], cards: Schemas['Cards'] | undefined): string {
  const asked = analysis.workload ?? {};
  const workload = asAsked(asked, models);
  const images = samplesOf(workload, models) === 'vision';
  return [
    nameOf(analysis, titleOf(workload, models)),
    methodName(workload),
    `${parallelOf(workload)?.gpus ?? 1} × ${cardOf({ gpu: analysis.gpu }, cards)?.name ?? analysis.gpu}`,
    (fields.precision as ChoiceField).options[asked.precision ?? 'fp32'] ?? asked.precision,
    `batch ${asked.batch ?? 1}`,
    isOwnCode(workload) ? '' : images ? `${asked.image ?? 224} pixels` : `${asked.sequence ?? 128} tokens`,
  ]
    .filter(Boolean)
    .join(', ');
}
