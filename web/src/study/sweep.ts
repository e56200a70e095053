// What the server predicts of a grid: one sweep for each row, so that the small
// models are there while the large ones are computed.
import type { Schemas } from '../api/client';
import type { Cell, Grid } from './grid';

export type SweptCell = Schemas['SweepCell'];

/** Row is a model in a precision. */
export interface Row {
  size: string;
  precision: string;
}

export interface Swept extends Row {
  cells: SweptCell[];
}

/** rowsOf are the rows of a grid, the smallest models first. */
export function rowsOf({ sizes, precisions }: Grid): Row[] {
  return sizes.flatMap((size) => precisions.map((precision) => ({ size, precision })));
}

/** modelOf is the id of a size in the catalog. */
function modelOf(size: string): string {
  return `lm-${size.toLowerCase()}`;
}

const phaseOf = (part: string) => (part === 'forward' ? 'forward' : 'train');

/** sweepOf is the sweep of a row. */
export function sweepOf({ size, precision }: Row, { contexts, parts, batch, gpu }: Grid): Schemas['SweepQuestion'] {
  return {
    workload: { model: modelOf(size), batch, gpu },
    axes: [
      { key: 'precision', values: [precision] },
      { key: 'sequence', values: contexts.map(Number) },
      { key: 'phase', values: parts.map(phaseOf) },
    ],
  };
}

/** cellIn finds a cell of the grid among what has been swept. */
export function cellIn(swept: Swept[], { size, context, part, precision }: Cell): SweptCell | undefined {
  const cells = swept.find((row) => row.size === size && row.precision === precision)?.cells;
  return cells?.find(({ values }) => values.sequence === context && values.phase === phaseOf(part));
}

/** fallsWithContext reports whether a longer context takes less somewhere, which must be explained. */
export function fallsWithContext(grid: Grid, swept: Swept[]): boolean {
  return rowsOf(grid).some((row) => {
    const cells = grid.contexts.map((context) => cellIn(swept, { ...row, context, part: 'training' })?.peak);
    return cells.some((peak, index) => {
      const before = cells[index - 1];
      return before && peak && (peak.allocated < before.allocated || peak.reserved < before.reserved);
    });
  });
}

/** reportOf is the study of one size over the grid's contexts, fp32 against the first mixed precision that is chosen. */
export function reportOf(size: string, { contexts, precisions, batch, gpu }: Grid): Schemas['ReportQuestion'] {
  const mixed = precisions.find((precision) => precision.startsWith('amp-')) ?? 'amp-bf16';
  return {
    models: [modelOf(size)] as Schemas['ReportQuestion']['models'],
    sequences: contexts.map(Number),
    precision: mixed as Schemas['ReportQuestion']['precision'],
    batch,
    gpu,
  };
}
