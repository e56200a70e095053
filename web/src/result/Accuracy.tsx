import type { Answer, Schemas } from '../api/client';
import { count, share } from '../format';

const kinds: [Exclude<keyof Schemas['Accuracy'], 'gpu' | 'pytorch' | 'transformers' | 'workloads'>, name: string][] = [
  ['largest_batch', 'Largest batch'],
  ['allocated', 'Allocated memory'],
  ['reserved', 'Reserved memory'],
  ['step_time', 'Time of a step'],
];

/** Accuracy says how far off such answers were, once for the whole page: in sentences, and in figures for those who open them. */
export function Accuracy({ answer: { notes, accuracy } }: { answer: Answer }) {
  const stated = notes?.filter(({ about }) => about === 'accuracy') ?? [];
  if (stated.length === 0) return null;
  return (
    <section aria-label="Accuracy" className="max-w-4xl text-xs text-muted">
      <p>{stated.map(({ text }) => text).join(' ')}</p>
      {accuracy && (
        <details className="mt-1">
          <summary className="inline-flex min-h-6 items-center underline decoration-dotted underline-offset-4 hover:text-text">How far off such answers were, in figures</summary>
          <div className="mt-2 overflow-x-auto" tabIndex={0} role="region" aria-label="Errors of such answers">
            <table className="w-full max-w-2xl">
              <thead>
                <tr>
                  {['Of', 'Checked', 'Exact', 'Half within', '95 % within', 'From', 'To'].map((title) => (
                    <th key={title} scope="col" className="py-1 pr-3 text-right font-normal first:text-left">
                      {title}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody className="text-text">
                {kinds.map(([kind, name]) => accuracy[kind] && <Row key={kind} name={name} errors={accuracy[kind]} />)}
              </tbody>
            </table>
          </div>
        </details>
      )}
    </section>
  );
}

function Row({ name, errors }: { name: string; errors: Schemas['Errors'] }) {
  const figures = [count(errors.cases), count(errors.exact), share(errors.median), share(errors.percentile_95), share(errors.lowest), share(errors.highest)];
  return (
    <tr className="border-t border-line">
      <th scope="row" className="py-1 pr-3 text-left font-normal whitespace-nowrap">
        {name}
      </th>
      {figures.map((figure, index) => (
        // oxlint-disable-next-line react/no-array-index-key
        <td key={index} className="py-1 pr-3 text-right whitespace-nowrap">
          {figure}
        </td>
      ))}
    </tr>
  );
}
