// The grid of a memory study: which cells there are, and the command that does
// the same. It is in the address, as a workload is.

export const axes = {
  sizes: ['small', 'medium', 'large', 'xl', '2.7B'],
  contexts: ['128', '256', '512', '1024'],
  parts: ['forward', 'training'],
  precisions: ['fp32', 'tf32', 'amp-bf16', 'amp-fp16', 'bf16'],
} as const;

export type Axis = keyof typeof axes;

export interface Grid extends Record<Axis, string[]> {
  batch: number;
  gpu?: string;
}

const initial: Grid = {
  sizes: [...axes.sizes],
  contexts: ['128', '256', '512'],
  parts: ['forward', 'training'],
  precisions: ['fp32', 'amp-bf16'],
  batch: 4,
};

/** Cell is one combination. */
export interface Cell {
  size: string;
  context: string;
  part: string;
  precision: string;
}

/** gridOf reads a grid from the part of an address after the question mark. */
export function gridOf(search: string): Grid {
  const from = new URLSearchParams(search);
  const grid: Grid = { ...initial, gpu: from.get('gpu') ?? undefined };
  for (const axis of Object.keys(axes) as Axis[]) {
    const chosen = from.get(axis)?.split(',');
    if (chosen) grid[axis] = axes[axis].filter((value) => chosen.includes(value));
  }
  const batch = Number(from.get('batch') ?? initial.batch);
  if (Number.isInteger(batch)) grid.batch = batch;
  return grid;
}

/** addressOfGrid is what gridOf reads. */
export function addressOfGrid(grid: Grid): string {
  const to = new URLSearchParams();
  for (const axis of Object.keys(axes) as Axis[]) {
    if (grid[axis].join() !== initial[axis].join()) to.set(axis, grid[axis].join());
  }
  if (grid.batch !== initial.batch) to.set('batch', String(grid.batch));
  if (grid.gpu) to.set('gpu', grid.gpu);
  return to.toString();
}

/** commandOf is the command that does the same. */
export function commandOf({ sizes, contexts, parts, precisions, batch, gpu }: Grid): string {
  return [
    `memorymark study sweep --model-size ${sizes.join()} --context-length ${contexts.join()} --profile-type ${parts.join()}`,
    `--precision ${precisions.join()} --batch-size ${batch}${gpu ? ` --gpu ${gpu}` : ''}`,
  ].join(' ');
}
