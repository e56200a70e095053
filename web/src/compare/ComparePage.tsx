import { type ReactNode, useState } from 'react';
import type { Schemas } from '../api/client';
import type { Problem } from '../api/problem';
import { ErrorBox } from '../ui/ErrorBox';
import { Evidence } from '../ui/Evidence';
import { PageTitle } from '../ui/PageTitle';
import { ProgressBar } from '../ui/ProgressBar';

import { FormPanel } from '../workload/FormPanel';
import type { QuestionState } from '../workload/useQuestion';
import { type Varied, WorkloadForm } from '../workload/WorkloadForm';

interface Props {
  title: string;
  about: string;
  state: QuestionState;
  without: Varied[];
  problem?: Problem;
  missing: number;
  of: number;
  /** how far such predictions were off, absent if that is not known */
  accuracy?: Schemas['Accuracy'];
  children: ReactNode;
}

/** ComparePage is a workload next to what it does elsewhere. */
export function ComparePage({ title, about, state, without, problem, missing, of, accuracy, children }: Props) {
  const [dismissed, setDismissed] = useState<Problem>();
  return (
    <>
      <PageTitle title={title}>{about}</PageTitle>
      <div className="grid grid-cols-1 gap-6 lg:grid-cols-[20rem_minmax(0,1fr)] lg:gap-10">
        <FormPanel state={state} without={without}>
          <WorkloadForm state={state} problem={problem ?? null} without={without} />
        </FormPanel>
        <div className="flex min-w-0 flex-col gap-4">
          {problem && problem.message !== dismissed?.message && (
            <ErrorBox problem={problem} title="The comparison failed" onDismiss={() => setDismissed(problem)} />
          )}
          <Progress done={of - missing} of={of} accuracy={accuracy} />
          {children}
        </div>
      </div>
    </>
  );
}

function Progress({ done, of, accuracy }: { done: number; of: number; accuracy?: Schemas['Accuracy'] }) {
  const busy = of === 0 || done < of;
  return (
    <div className="flex min-h-4 flex-wrap items-center gap-x-6 gap-y-1 text-xs text-muted" role="status">
      {busy ? (
        <span className="flex items-center gap-3">
          <span className="w-32">
            <ProgressBar label="Progress" value={done} max={of} />
          </span>
          predicted {done} of {of || 'all'}
        </span>
      ) : (
        <>
          <span>Each is simulated with PyTorch's allocator.</span>
          <span className="flex items-center gap-2">
            Batches <Evidence engine="predicted" errors={accuracy?.largest_batch} />
          </span>
          <span className="flex items-center gap-2">
            Speed and cost <Evidence engine="predicted" errors={accuracy?.step_time} />
          </span>
        </>
      )}
    </div>
  );
}
