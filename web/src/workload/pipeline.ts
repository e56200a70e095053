// Pipelines: how many layers each GPU has.
import type { Model, Workload } from '../api/client';

/** layersOf is how many layers the model of a workload has, undefined where its configuration does not say. */
export function layersOf({ model, config }: Workload, models: Model[]): number | undefined {
  const { num_hidden_layers: layers } = { ...models.find(({ id }) => id === model)?.config, ...config };
  return typeof layers === 'number' ? layers : undefined;
}

/** evenStages shares layers among GPUs. Where they do not divide, the first GPUs have one more. */
export function evenStages(layers: number, gpus: number): number[] {
  return Array.from({ length: gpus }, (_, gpu) => Math.floor(layers / gpus) + (gpu < layers % gpus ? 1 : 0));
}

/** parseStages reads stages as people write them: 8/8/8/8. It is undefined while they are not written to the end. */
export function parseStages(text: string): number[] | undefined {
  const words = text.trim().split(/\s*[/,]\s*/);
  return words.length > 1 && words.every((word) => /^[1-9]\d*$/.test(word)) ? words.map(Number) : undefined;
}
