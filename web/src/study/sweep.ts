// What the server predicts of a grid: one sweep for each model size, so that the
// small ones are there while the large ones are computed.
import type { Schemas } from '../api/client';
import type { Cell, Grid } from './grid';

export type SweptCell = Schemas['SweepCell'];

export interface Swept {
  size: string;
  cells: SweptCell[];
}

/** modelOf is the id of a size in the catalog. */
function modelOf(size: string): string {
  return `lm-${size.toLowerCase()}`;
}

const phaseOf = (part: string) => (part === 'forward' ? 'forward' : 'train');

/** sweepOf is the sweep of a size: all that the grid has of it. */
export function sweepOf(size: string, { contexts, parts, precisions, batch, gpu }: Grid): Schemas['SweepQuestion'] {
  return {
    workload: { model: modelOf(size), batch, gpu },
    axes: [
      { key: 'precision', values: precisions },
      { key: 'sequence', values: contexts.map(Number) },
      { key: 'phase', values: parts.map(phaseOf) },
    ],
  };
}

/** cellIn finds a cell of the grid among what has been swept. */
export function cellIn(swept: Swept[], { size, context, part, precision }: Cell): SweptCell | undefined {
  const cells = swept.find((one) => one.size === size)?.cells;
  return cells?.find(({ values }) => values.sequence === context && values.phase === phaseOf(part) && values.precision === precision);
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
