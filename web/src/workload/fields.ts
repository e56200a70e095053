// The keys of a workload as fields of a form, as the API's document describes
// them: a new key of the API is a new field.
import type { Workload } from '../api/client';
import keys from '../api/keys.json';

/** Elsewhere are the keys with a place of their own. */
type Elsewhere = 'model' | 'config' | 'gpu' | 'id' | 'limit_gib' | 'parallel' | 'lengths' | 'packing' | 'versions';
type Key = Exclude<keyof Workload, Elsewhere>;

interface Described {
  label: string;
  /** what it means, as the API explains it */
  help: string;
}

export interface ChoiceField extends Described {
  kind: 'choice';
  initial: string;
  options: Record<string, string>;
}

export interface NumberField extends Described {
  kind: 'number';
  initial: number;
  unit: string;
}

export interface SwitchField extends Described {
  kind: 'switch';
  initial: false;
}

export type Field = ChoiceField | NumberField | SwitchField;

/** Value is a value of a choice, and what it is called. */
interface Value {
  name: string;
  label: string;
}

/** Property is a key in the document. */
interface Property {
  description: string;
  default?: unknown;
  'x-label'?: string;
  'x-unit'?: string;
  'x-values'?: Value[];
}

const properties = keys as Record<string, Property>;

function fieldOf({ description: help, default: initial, ...key }: Property): Field {
  const label = key['x-label'] ?? '';
  if (key['x-values']) {
    const options = Object.fromEntries(key['x-values'].map((value) => [value.name, value.label]));
    return { kind: 'choice', label, help, initial: String(initial), options };
  }
  if (initial === false) return { kind: 'switch', label, help, initial };
  return { kind: 'number', label, help, initial: Number(initial), unit: key['x-unit'] ?? '' };
}

/** What is asked most. */
export const first: Key[] = ['precision', 'optimizer', 'batch', 'sequence', 'image', 'checkpointing'];

/** What is folded away, by what it is about. */
export const adapters: Key[] = ['adapter', 'quantize'];
export const training: Key[] = ['optimizer_impl', 'accumulate', 'clip_grad_norm', 'loop'];
const placed = [...first, ...adapters, ...training, 'versions'];
export const more = Object.keys(properties).filter((key) => properties[key]?.['x-label'] && !placed.includes(key)) as Key[];

/** fields are the keys with a label; the others have places of their own. */
export const fields = Object.fromEntries([...first, ...adapters, ...training, ...more].map((key) => [key, fieldOf(properties[key]!)])) as Record<Key, Field>;

export type FieldKey = Key;
