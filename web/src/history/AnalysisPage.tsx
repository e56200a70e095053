import { useQuery } from '@tanstack/react-query';
import { Link, useLocation, useParams } from 'wouter';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { useModels } from '../api/queries';
import { ended, useWatch } from '../api/watch';
import { Run } from '../analyze/Run';
import { CopyAs } from '../result/CopyAs';
import { KeptResult } from '../result/KeptResult';
import { ErrorBox } from '../ui/ErrorBox';
import { Loading } from '../ui/Loading';
import { PageTitle } from '../ui/PageTitle';
import { addressOf } from '../workload/address';
import { asAsked } from '../workload/subject';

/** AnalysisPage is one analysis of the history, live while it runs. */
export default function AnalysisPage() {
  const { id = '' } = useParams();
  const [, navigate] = useLocation();
  const kept = useQuery({
    queryKey: ['history', id],
    queryFn: ({ signal }) => answer(api.GET('/v1/analyses/{id}', { params: { path: { id } }, signal })),
  });
  const watched = useWatch(kept.data ? id : undefined);
  const models = useModels().data?.models ?? [];
  const analysis = watched.analysis ?? kept.data;
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
  return (
    <div className="flex min-w-0 flex-col gap-6">
      <p className="text-sm">
        <Link href="/history" className="text-muted hover:text-text">
          History
        </Link>
        <span className="px-2 text-faint">/</span>
        <Link href={`/?${addressOf({ workload })}`} className="text-accent-text underline underline-offset-4">
          Repeat with changes
        </Link>
      </p>
      {!analysis.answer && <h1 className="text-2xl font-semibold tracking-tight">{ended(analysis) ? 'No answer' : 'On its way'}</h1>}
      {analysis.answer && <KeptResult answer={analysis.answer} workload={workload} />}
      {analysis.answer && (
        <CopyAs question={{ workload }} answer={analysis.answer} />
      )}
      <Run id={id} watched={watched} onClose={() => navigate('/history')} />
    </div>
  );
}
