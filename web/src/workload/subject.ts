// What a workload is about, in words, and whether its samples are text or images.
import type { Card, Model, Workload } from '../api/client';

/** findModel is the model of an id, or of a Hugging Face id with or without its owner, as the server finds it. */
export function findModel(id: string | undefined, models: Model[]): Model | undefined {
  const wanted = id?.toLowerCase();
  const called = (name = '') => [name.toLowerCase(), name.toLowerCase().split('/').at(-1)].includes(wanted);
  return wanted ? (models.find((m) => m.id.toLowerCase() === wanted) ?? models.find((m) => [m.huggingface_id, ...(m.same ?? [])].some(called))) : undefined;
}

/** titleOf names the model of a workload. */
export function titleOf({ model, config }: Workload, models: Model[]): string {
  const known = findModel(model, models);
  if (model) return (known?.name ?? model) + (config ? ', changed' : '');
  if (!config) return 'Your own code';
  const name = config._name_or_path;
  return typeof name === 'string' && name ? name : `config.json (${String(config?.model_type ?? 'no model_type')})`;
}

/** asAsked is a workload as a person would write it: the server has filled in the configuration of a model of the catalog. */
export function asAsked(workload: Workload, models: Model[]): Workload {
  const { config, ...rest } = workload;
  if (!config) return rest;
  const known = findModel(workload.model, models);
  if (!known) return workload;
  const changed = Object.entries(config).filter(([key, value]) => JSON.stringify(known.config[key]) !== JSON.stringify(value));
  return changed.length === 0 ? rest : { ...rest, config: Object.fromEntries(changed) };
}

/** isOwnCode reports whether the workload of an analysis has no model of its own: a program makes it. */
export function isOwnCode({ model, config }: Workload): boolean {
  return !model && !config;
}

/** samplesOf is what a sample is. A configuration is looked up by its model_type in the catalog. */
export function samplesOf({ model, config }: Workload, models: Model[]): 'nlp' | 'vision' {
  const known = model ? findModel(model, models) : models.find((m) => m.config.model_type === config?.model_type);
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
  return !notCheckpointed.includes(String(config?.model_type ?? findModel(model, models)?.config.model_type));
}
