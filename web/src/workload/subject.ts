// What a workload is about, in words, and whether its samples are text or images.
import type { Card, Model, Workload } from '../api/client';

/** titleOf names the model of a workload. */
export function titleOf({ model, config }: Workload, models: Model[]): string {
  const known = models.find((m) => m.id === model);
  if (model) return (known?.name ?? model) + (config ? ', changed' : '');
  if (!config) return 'Your own code';
  const name = config._name_or_path;
  return typeof name === 'string' && name ? name : `config.json (${String(config?.model_type ?? 'no model_type')})`;
}

/** asAsked is a workload as a person would write it: the server has filled in the configuration of a model of the catalog. */
export function asAsked(workload: Workload, models: Model[]): Workload {
  const { config, ...rest } = workload;
  const known = models.find((m) => m.id === workload.model);
  if (!config || !known) return workload;
  const changed = Object.entries(config).filter(([key, value]) => JSON.stringify(known.config[key]) !== JSON.stringify(value));
  return changed.length === 0 ? rest : { ...rest, config: Object.fromEntries(changed) };
}

/** samplesOf is what a sample is. A configuration is looked up by its model_type in the catalog. */
export function samplesOf({ model, config }: Workload, models: Model[]): 'nlp' | 'vision' {
  const known = model ? models.find((m) => m.id === model) : models.find((m) => m.config.model_type === config?.model_type);
  return known?.type === 'vision' ? 'vision' : 'nlp';
}

/** cardOf is the card of a workload: the one that it names, else the server's default. */
export function cardOf({ gpu }: Workload, cards: { gpus: Card[] | null; default: string } | undefined): Card | undefined {
  const id = (gpu ?? cards?.default)?.toLowerCase();
  return cards?.gpus?.find((card) => card.id === id || card.aliases?.includes(id ?? ''));
}

const notCheckpointed = ['resnet', 'torchvision_resnet', 'convnext', 'convnextv2'];

/** canCheckpoint reports whether a model's code has activation checkpointing. */
export function canCheckpoint({ model, config }: Workload, models: Model[]): boolean {
  return !notCheckpointed.includes(String(config?.model_type ?? models.find((m) => m.id === model)?.config.model_type));
}
