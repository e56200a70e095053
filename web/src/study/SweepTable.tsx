import type { Grid } from './grid';
import type { Measure } from './measures';
import { cellIn, type Swept, type SweptCell } from './sweep';

interface Props {
  grid: Grid;
  swept: Swept[];
  measure: Measure;
  names: Record<string, string>;
  /** nothing more comes */
  complete: boolean;
}

/** SweepTable is a row for each model and precision, with a column for each context and part of a step. */
export function SweepTable({ grid, swept, measure, names, complete }: Props) {
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
                  <Figure found={cellIn(swept, { size, precision, ...column })} measure={measure} complete={complete} />
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
                    <Figure found={cellIn(swept, { size, precision, ...column })} measure={measure} complete={complete} />
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

function Figure({ found, measure, complete }: Pick<Props, 'measure' | 'complete'> & { found: SweptCell | undefined }) {
  if (!found) return <span className="text-faint">{complete ? 'no answer' : '…'}</span>;
  const value = measure.of(found);
  if (value === undefined) {
    return (
      <span className="text-muted" title={found.error}>
        none
      </span>
    );
  }
  return (
    <span className={found.out_of_memory ? 'text-bad-text' : ''}>
      {measure.show(value)}
      {found.out_of_memory && <span className="sr-only"> does not fit</span>}
    </span>
  );
}
