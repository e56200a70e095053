import type { Schemas } from '../api/client';

export type Cause = Exclude<keyof Schemas['Breakdown'], 'total'>;

/** causes of memory, in the order in which they are stacked: what is there whatever the batch comes first. */
export const causes: [Cause, name: string, token: string][] = [
  ['context', 'CUDA context', 'context'],
  ['parameters', 'Weights', 'parameters'],
  ['optimizer_state', 'Optimizer', 'optimizer'],
  ['gradients', 'Gradients', 'gradients'],
  ['activations', 'Activations', 'activations'],
  ['temporaries', 'Temporaries', 'temporaries'],
  ['workspaces', 'Workspaces', 'workspaces'],
  ['input', 'Inputs', 'input'],
  ['rounding', 'Rounding', 'rounding'],
  ['fragmentation', 'Fragmentation', 'fragmentation'],
];
