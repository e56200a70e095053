import type { Workload } from '../api/client';
import { type FieldKey, fields } from './fields';

/** patchOf is a single change as the API names it, "precision amp-bf16" or "checkpointing", as keys of a workload. */
export function patchOf(change: string): Partial<Workload> {
  const [key = '', value] = change.split(' ');
  return { [key]: value ?? true };
}

/** nameOf is such a change in the words of the form. */
export function nameOf(change: string): string {
  const [key = '', value] = change.split(' ');
  const field = fields[key as FieldKey];
  if (!field) return change;
  if (field.kind !== 'choice' || value === undefined) return field.label;
  return `${field.label}: ${field.options[value] ?? value}`;
}
