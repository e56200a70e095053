// The address bar holds the whole question, so that a link reproduces it. What
// is as it always is stays out of it.
import type { Schemas, Workload } from '../api/client';
import { fields } from './fields';

/** Question is what is asked of a workload. */
export type Question = Pick<
  Schemas['Question'],
  'workload' | 'global_batch' | 'multiple_of' | 'reserve_bytes' | 'hours_per_year' | 'price_per_hour' | 'run_tokens' | 'run_samples'
>;

const beside = ['global_batch', 'multiple_of', 'reserve_bytes', 'hours_per_year', 'price_per_hour', 'run_tokens', 'run_samples'] as const;

/** Keys whose values may be objects, which an address has as JSON. */
const objects = ['config', 'adapter', 'loop', 'parallel', 'lengths', 'versions'] as const;

/** modelOfArrival is what people who bring no question look at first. */
const modelOfArrival = 'bert';

/** questionOf reads a question from the part of an address after the question mark. What it does not know it leaves alone. */
export function questionOf(search: string): Question {
  const from = new URLSearchParams(search);
  const workload: Record<string, unknown> = {};
  for (const key of ['model', 'gpu', 'id']) {
    if (from.get(key)) workload[key] = from.get(key);
  }
  if (from.get('packing') === 'true') workload.packing = true;
  if (isNumber(from.get('limit_gib'))) workload.limit_gib = Number(from.get('limit_gib'));
  for (const [key, field] of Object.entries(fields)) {
    const text = from.get(key);
    if (text === null || text === '') continue;
    if (field.kind === 'choice') workload[key] = text;
    else if (field.kind === 'switch') workload[key] = text === 'true';
    else if (isNumber(text)) workload[key] = Number(text);
    if (workload[key] === field.initial) delete workload[key];
  }
  for (const key of objects) {
    const value = jsonObject(from.get(key));
    if (value) workload[key] = value;
  }
  if (!workload.model && !workload.config) workload.model = modelOfArrival;
  const question: Question = { workload: workload as Workload };
  for (const key of beside) {
    const number = Number(from.get(key));
    if (isNumber(from.get(key)) && number >= 0) question[key] = number;
  }
  return question;
}

/** othersIn is what an address says that is no part of a question: a page's own. */
export function othersIn(search: string): string {
  const known: readonly string[] = ['model', 'gpu', 'id', 'limit_gib', 'packing', ...Object.keys(fields), ...objects, ...beside];
  return new URLSearchParams([...new URLSearchParams(search)].filter(([key]) => !known.includes(key))).toString();
}

/** workloadIn is the workload of an address that may be about something else, null if it names none. */
export function workloadIn(search: string): Workload | null {
  return /(^|&)(model|config)=/.test(search) ? questionOf(search).workload : null;
}

/** without is a question whose workload leaves keys open. */
export function without({ workload, ...rest }: Question, ...keys: (keyof Workload)[]): Question {
  const left = Object.entries(workload).filter(([key]) => !keys.includes(key as keyof Workload));
  return { ...rest, workload: Object.fromEntries(left) };
}

/** addressOf is the part of an address after the question mark that questionOf reads. */
export function addressOf({ workload, ...rest }: Question): string {
  const to = new URLSearchParams();
  const { config, ...plain } = workload;
  for (const [key, value] of Object.entries({ ...plain, ...rest, config })) {
    if (value === undefined || value === '' || isUsual(key, value)) continue;
    to.set(key, typeof value === 'object' ? JSON.stringify(value) : String(value));
  }
  return to.toString();
}

/** timelineOf is where the process of a workload is shown over time, at its own batch or another. */
export function timelineOf(workload: Workload, batch = workload.batch): string {
  return `/timeline?${addressOf({ workload: { ...workload, batch } })}`;
}

// isUsual reports whether a value is as it is without being said.
function isUsual(key: string, value: unknown): boolean {
  return key === 'packing' ? value === false : value === fields[key as keyof typeof fields]?.initial;
}

function isNumber(text: string | null): text is string {
  return text !== null && text.trim() !== '' && Number.isFinite(Number(text));
}

function jsonObject(text: string | null): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text ?? 'null');
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
