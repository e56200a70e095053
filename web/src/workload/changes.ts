import type { Workload } from '../api/client';
import { type FieldKey, fields } from './fields';

/** patchOf is a change as the API names it, "precision amp-bf16" or "checkpointing + optimizer sgd", as keys of a workload. */
export function patchOf(change: string): Partial<Workload> {
  return Object.fromEntries(
    change.split(' + ').map((one) => {
      const [key = '', value] = one.split(' ');
      return [key, value ?? true];
    }),
  );
}

/** nameOf is such a change in the words of the form. */
export function nameOf(change: string): string {
  return change.split(' + ').map(nameOfOne).join(' and ');
}

function nameOfOne(change: string): string {
  const [key = '', value] = change.split(' ');
  const field = fields[key as FieldKey];
  if (!field) return change;
  if (field.kind !== 'choice' || value === undefined) return field.label;
  return `${field.label}: ${field.options[value] ?? value}`;
}
