import type { Curve } from '../api/client';
import { bytes, count, rate } from '../format';

/** ResultTable is every batch that was looked at, for those who want the numbers. */
export function ResultTable({ points }: { points: NonNullable<Curve['points']> }) {
  const text = points.some((p) => p.tokens_per_second);
  return (
    <details className="rounded-lg border border-line bg-surface px-5 py-4 text-sm sm:px-6">
      <summary className="text-muted hover:text-text">All {points.length} batches that were tried</summary>
      <table className="mt-4 w-full">
        <thead className="text-xs text-muted">
          <tr>
            {['Batch', 'Allocated', 'Reserved', 'Samples/s', ...(text ? ['Tokens/s'] : []), 'Trains'].map((title, index) => (
              <th key={title} scope="col" className={`pb-2 text-right font-normal ${index === 2 ? 'hidden sm:table-cell' : ''}`}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {points.map((p) => (
            <tr key={p.batch_size} className="border-t border-line">
              <td className="py-1 text-right">{count(p.batch_size)}</td>
              <td className="py-1 text-right">{p.memory_bytes ? bytes(p.memory_bytes) : ''}</td>
              <td className="hidden py-1 text-right sm:table-cell">{p.reserved_bytes ? bytes(p.reserved_bytes) : ''}</td>
              <td className="py-1 text-right">{p.samples_per_second ? rate(p.samples_per_second) : ''}</td>
              {text && <td className="py-1 text-right">{p.tokens_per_second ? rate(p.tokens_per_second) : ''}</td>}
              <td className={`py-1 text-right ${p.success ? 'text-accent-text' : 'text-bad-text'}`}>{p.success ? 'yes' : 'no'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
