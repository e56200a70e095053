import { Trash2 } from 'lucide-react';
import { Link } from 'wouter';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { bytes, count, moment } from '../format';
import { useSnapshots } from '../timeline/queries';
import { Button, buttonLook } from '../ui/Button';
import { Empty } from '../ui/Empty';
import { ErrorBox } from '../ui/ErrorBox';
import { Loading } from '../ui/Loading';
import { Removed } from '../ui/Removed';
import { useRemoval } from '../ui/useRemoval';

const origins: Record<string, string> = { uploaded: 'recorded', measured: 'measured', emulated: 'emulated', predicted: 'predicted' };

/** Recordings lists the snapshots that the server keeps: dated, to be opened, to be deleted. */
export function Recordings() {
  const kept = useSnapshots();
  const removal = useRemoval(async (id) => {
    await answer(api.DELETE('/v1/snapshots/{id}', { params: { path: { id } }, keepalive: true }));
    await kept.refetch();
  });
  const shown = (kept.data?.snapshots ?? []).filter(({ id }) => id !== removal.pending?.id).toSorted((a, b) => b.created.localeCompare(a.created));
  return (
    <>
      {kept.error && <ErrorBox problem={Problem.of(kept.error)} />}
      {kept.isPending && <Loading what="the recordings" />}
      {kept.isSuccess && shown.length === 0 && <Nothing />}
      {shown.length > 0 && (
        <>
          <div className="rounded-lg border border-line bg-surface px-3 sm:px-5">
            <table className="w-full text-sm">
              <thead className="text-xs text-muted">
                <tr>
                  <th scope="col" className="py-2 text-left font-normal">
                    Recording
                  </th>
                  <th scope="col" className="hidden py-2 pl-3 text-left font-normal sm:table-cell">
                    Evidence
                  </th>
                  <th scope="col" className="py-2 pl-3 text-right font-normal">
                    Size
                  </th>
                  <th scope="col" className="py-2 pl-3 text-right font-normal">
                    Saved
                  </th>
                  <th scope="col" className="w-12">
                    <span className="sr-only">Delete</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {shown.map((entry) => {
                  const name = entry.name || `snapshot ${entry.id.slice(0, 12)}`;
                  return (
                    <tr key={entry.id} className="border-t border-line">
                      <th scope="row" className="w-full max-w-0 py-2 text-left font-normal">
                        <Link href={`/timeline?snapshot=${entry.id}`} className="block min-h-6 truncate rounded font-medium hover:text-accent-text">
                          {name}
                        </Link>
                      </th>
                      <td className="hidden w-28 py-2 pl-3 text-muted sm:table-cell">{origins[entry.origin] ?? entry.origin}</td>
                      <td className="w-24 py-2 pl-3 text-right whitespace-nowrap">{bytes(entry.stored_bytes)}</td>
                      <td className="w-36 py-2 pl-3 text-right whitespace-nowrap text-muted">
                        <time dateTime={entry.created}>{moment(entry.created)}</time>
                      </td>
                      <td className="py-1.5 pl-2 text-right">
                        <Button look="quiet" size="small" aria-label={`Delete ${name}`} onClick={() => removal.remove(entry.id, name)}>
                          <Trash2 size={14} aria-hidden />
                        </Button>
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          <p className="mt-4 text-xs text-muted">
            {count(shown.length)} take {bytes(kept.data?.stored_bytes ?? 0)} of the {bytes(kept.data?.quota_bytes ?? 0)} that the server keeps.
          </p>
        </>
      )}
      <Removed removal={removal} />
    </>
  );
}

function Nothing() {
  return (
    <Empty title="No recordings yet">
      <p>
        Drop a file of <code className="font-mono">torch.cuda.memory._dump_snapshot</code> on any page, or open a prediction over time, and it is saved here.
      </p>
      <Link href="/timeline" className={`mt-4 ${buttonLook('primary', 'normal')}`}>
        Open the timeline
      </Link>
    </Empty>
  );
}
