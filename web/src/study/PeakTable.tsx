import { bytes } from '../format';
import type { Cell, Grid } from './grid';
import { peakOf } from './peak';
import type { Studied } from './StudyPage';

interface Props {
  grid: Grid;
  rows: Studied[];
  names: Record<string, string>;
}

/** PeakTable is a row for each model and precision, with a column for each context and part of a step. */
export function PeakTable({ grid, rows, names }: Props) {
  const columns = grid.contexts.flatMap((context) => grid.parts.map((part) => ({ context, part })));
  const lines = grid.sizes.flatMap((size) => grid.precisions.map((precision) => ({ size, precision })));
  return (
    <>
      <table className="hidden w-full text-sm md:table">
        <thead className="text-xs text-muted">
          <tr>
            <th scope="col" className="pb-2 text-left font-normal">
              Model
            </th>
            {columns.map(({ context, part }) => (
              <th key={context + part} scope="col" className="pb-2 text-right font-normal">
                {context}
                <span className="block">{part}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map(({ size, precision }) => (
            <tr key={size + precision} className="border-t border-line">
              <th scope="row" className="py-2 pr-3 text-left font-normal">
                {size} <span className="text-xs text-muted">{names[precision]}</span>
              </th>
              {columns.map((column) => (
                <td key={column.context + column.part} className="py-2 pl-2 text-right whitespace-nowrap">
                  <Peak rows={rows} cell={{ size, precision, ...column }} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <div className="flex flex-col gap-5 md:hidden">
        {lines.map(({ size, precision }) => (
          <section key={size + precision}>
            <h3 className="text-sm font-medium">
              {size} <span className="text-xs font-normal text-muted">{names[precision]}</span>
            </h3>
            <dl className="mt-1 grid grid-cols-[1fr_auto] gap-x-4 gap-y-0.5 text-sm">
              {columns.map((column) => (
                <div key={column.context + column.part} className="contents">
                  <dt className="text-muted">
                    {column.context}, {column.part}
                  </dt>
                  <dd className="text-right">
                    <Peak rows={rows} cell={{ size, precision, ...column }} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </>
  );
}

function Peak({ rows, cell }: { rows: Studied[]; cell: Cell }) {
  const found = peakOf(rows, cell);
  if (!found) return <span className="text-faint">…</span>;
  return (
    <span className={found.fits ? '' : 'text-bad-text'}>
      {bytes(found.peak)}
      {!found.fits && <span className="sr-only"> does not fit</span>}
    </span>
  );
}
