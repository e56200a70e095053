import type { Schemas, Workload } from '../api/client';

type Change = Pick<Schemas['Change'], 'label' | 'patch'>;

/** patchOf is what changes set of a workload, one after the other. */
export function patchOf(changes: Change[] | null | undefined): Partial<Workload> {
  return Object.assign({}, ...(changes ?? []).map(({ patch }) => patch)) as Partial<Workload>;
}

/** labelsOf is a set of changes in a few words. */
export function labelsOf(changes: Change[] | null | undefined): string {
  return (changes ?? []).map(({ label }) => label).join(' + ');
}
