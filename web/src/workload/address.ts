// The address bar holds the whole question, so that a link reproduces it. What
// is as it always is stays out of it.
import type { Schemas, Workload } from '../api/client';
import { amountOf } from '../ui/amount';
import { fields } from './fields';
import { flat, type Json, listed, nested, valueOf } from './nested';

/** Question is what is asked of a workload. */
export type Question = Pick<Schemas['Question'], 'workload' | 'global_batch' | 'multiple_of' | 'reserve_bytes' | 'hours_per_year' | 'price_per_hour'> & {
  run_tokens?: number;
  run_samples?: number;
};

/** Kind is what a key of an address holds. */
type Kind = 'number' | 'amount' | 'flag' | 'text';

/** OwnKeys are the keys of a page in addition to those of a question. */
export type OwnKeys = Readonly<Record<string, Kind>>;

const beside = ['global_batch', 'multiple_of', 'reserve_bytes', 'hours_per_year', 'price_per_hour', 'run_tokens', 'run_samples'] as const;

const amounts: readonly string[] = ['run_tokens', 'run_samples'];

/** What the API of plans and the command line call an amount. */
const aliases: Record<string, string> = { tokens: 'run_tokens', samples: 'run_samples' };

/** Keys whose values may be objects. In an address they have a key for each of their own: parallel.gpus. */
const objects = ['config', 'lora', 'adapter', 'loop', 'parallel', 'lengths', 'versions'];

/** modelOfArrival is what people who bring no question look at first. */
const modelOfArrival = 'bert';

/** Unreadable is a part of an address that says nothing. */
export interface Unreadable {
  key: string;
  text: string;
  /** what is expected there */
  wanted: string;
}

/** questionOf reads a question from the part of an address after the question mark. */
export function questionOf(search: string): Question {
  return read(search).question;
}

/** unreadableIn are the parts of an address that cannot be read. Pages have keys of their own. */
export function unreadableIn(search: string, own: OwnKeys): Unreadable[] {
  const others = [...new URLSearchParams(search)].filter(([key]) => !isOfQuestion(key) && !key.startsWith('utm_'));
  const unreadable = others.flatMap(([key, text]) => {
    const kind = own[key];
    const wanted = kind === undefined ? 'there is no such setting' : wantedOf(kind, text);
    return wanted ? [{ key, text, wanted }] : [];
  });
  return [...read(search).unreadable, ...unreadable];
}

/** wantedOf is what is expected where a text cannot be read. */
function wantedOf(kind: Kind, text: string, least = 0): string | undefined {
  if (text === '' || kind === 'text') return undefined;
  if (kind === 'flag') return text === 'true' || text === 'false' ? undefined : 'true or false is expected';
  if (kind === 'amount') return amountOf(text) === undefined ? 'an amount is expected, such as 1B, 300M or 1e9' : undefined;
  if (text.trim() !== '' && Number.isFinite(Number(text)) && Number(text) >= least) return undefined;
  return Number.isFinite(least) ? `a number from ${least} on is expected` : 'a number is expected';
}

function read(search: string): { question: Question; unreadable: Unreadable[] } {
  const from = new URLSearchParams(search);
  const workload: Record<string, Json> = {};
  const unreadable: Unreadable[] = [];
  const readable = (key: string, kind: Kind, least?: number): string | undefined => {
    const text = from.get(key) ?? '';
    const wanted = wantedOf(kind, text, least);
    if (wanted) unreadable.push({ key, text, wanted });
    return wanted || text === '' ? undefined : text;
  };
  const number = (key: string, least = -Infinity): number | undefined => {
    const text = readable(key, 'number', least);
    return text === undefined ? undefined : Number(text);
  };
  const flag = (key: string): boolean | undefined => {
    const text = readable(key, 'flag');
    return text === undefined ? undefined : text === 'true';
  };
  for (const key of ['model', 'gpu', 'id']) set(workload, key, from.get(key) || undefined);
  set(workload, 'packing', flag('packing') || undefined);
  set(workload, 'limit_gib', number('limit_gib'));
  for (const [key, field] of Object.entries(fields)) {
    if (objects.includes(key) && field.kind !== 'choice') continue;
    const value = field.kind === 'choice' ? from.get(key) || undefined : field.kind === 'switch' ? flag(key) : number(key);
    if (value !== field.initial) set(workload, key, value);
  }
  readObjects(from, workload, unreadable);
  if (!workload.model && !workload.config) workload.model = modelOfArrival;
  const question: Question = { workload: workload as Workload };
  for (const key of beside.filter((each) => !amounts.includes(each))) {
    const value = number(key, 0);
    if (value !== undefined) question[key] = value;
  }
  for (const key of [...amounts, ...Object.keys(aliases)]) {
    const text = readable(key, 'amount');
    if (text !== undefined) question[(aliases[key] ?? key) as 'run_tokens'] = amountOf(text);
  }
  return { question, unreadable };
}

function set(workload: Record<string, Json>, key: string, value: Json | undefined) {
  if (value !== undefined) workload[key] = value;
}

// Links of before had JSON, which is still read.
function readObjects(from: URLSearchParams, workload: Record<string, Json>, unreadable: Unreadable[]) {
  const found: Record<string, Json> = {};
  for (const [key, text] of from) {
    const path = key.split('.');
    if (!objects.includes(path[0]!) || text === '') continue;
    const value = /^[{[]/.test(text) ? json(text) : path[0] === 'versions' ? text : valueOf(text);
    if (value === undefined) unreadable.push({ key, text, wanted: 'it is incomplete or damaged' });
    else if (path.length > 1) nested(found, path.map((each, index) => (index === 0 && each in found && typeof found[each] !== 'object' ? `${each}.` : each)), value);
    else found[key] = value;
  }
  if (typeof found.loop === 'string') delete found.loop; // a choice
  const { lora, 'lora.': options, parallel: kind, 'parallel.': shape, adapter, ...rest } = found;
  if (lora !== undefined && typeof lora !== 'number') unreadable.push({ key: 'lora', text: String(from.get('lora') ?? ''), wanted: 'a rank is expected' });
  else if (lora) set(workload, 'adapter', options ? { kind: 'lora', rank: lora, ...(listed(options) as object) } : lora);
  if (typeof adapter === 'string') unreadable.push({ key: 'adapter', text: adapter, wanted: 'a rank is expected' });
  else if (adapter) set(workload, 'adapter', listed(adapter));
  if (typeof kind === 'object') set(workload, 'parallel', listed(kind));
  else if (typeof kind === 'string') set(workload, 'parallel', { kind, ...(listed(shape ?? {}) as object) });
  else if (kind !== undefined) unreadable.push({ key: 'parallel', text: String(kind), wanted: 'a kind of parallelism is expected, such as fsdp' });
  for (const [key, value] of Object.entries(rest)) {
    if (typeof value === 'object') set(workload, key, key === 'lengths' ? value : listed(value));
    else unreadable.push({ key, text: String(value), wanted: `values are expected, such as ${key}.name=1` });
  }
}

function isOfQuestion(key: string): boolean {
  const known: readonly string[] = ['model', 'gpu', 'id', 'limit_gib', 'packing', ...Object.keys(fields), ...beside, ...Object.keys(aliases)];
  return known.includes(key) || objects.includes(key.split('.')[0]!);
}

/** othersIn is what an address says that is no part of a question: a page's own. */
export function othersIn(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([key]) => !isOfQuestion(key))).toString();
}

/** workloadIn is the workload of an address that may be about something else, null if it names none. */
export function workloadIn(search: string): Workload | null {
  return /(^|&)(model=|config[.=])/.test(search) ? questionOf(search).workload : null;
}

/** without is a question whose workload leaves keys open. */
export function without({ workload, ...rest }: Question, ...keys: (keyof Workload)[]): Question {
  const left = Object.entries(workload).filter(([key]) => !keys.includes(key as keyof Workload));
  return { ...rest, workload: Object.fromEntries(left) };
}

/** addressOf is the part of an address after the question mark that questionOf reads. */
export function addressOf({ workload, ...rest }: Question): string {
  const { config, ...plain } = workload;
  const pairs = Object.entries({ ...plain, ...rest, config }).flatMap(([key, value]): [string, string][] => {
    if (value === undefined || value === '' || isUsual(key, value)) return [];
    return short(typeof value === 'object' ? flat(key, value as Json) : [[key, String(value)]]);
  });
  // What need not be escaped stays readable.
  return pairs.map(([key, text]) => `${encodeURIComponent(key)}=${encodeURIComponent(text).replaceAll('%2C', ',').replaceAll('%2F', '/').replaceAll('%3A', ':')}`).join('&');
}

// short is an adapter by its rank, and a parallelism by its kind.
function short(pairs: [string, string][]): [string, string][] {
  const isLoRA = pairs[0]?.[0] === 'adapter' || pairs.some(([key, text]) => key === 'adapter.kind' && text === 'lora');
  return pairs.flatMap(([key, text]): [string, string][] => {
    if (isLoRA && key === 'adapter.kind') return [];
    if (isLoRA && /^adapter(\.rank)?$/.test(key)) return [['lora', text]];
    if (isLoRA) return [[key.replace(/^adapter/, 'lora'), text]];
    return [[key === 'parallel.kind' ? 'parallel' : key, key.startsWith('versions.') ? text.replace(/^'/, '') : text]];
  });
}

/** timelineOf is where the process of a workload is shown over time, at its own batch or another. */
export function timelineOf(workload: Workload, batch = workload.batch): string {
  return `/timeline?${addressOf({ workload: { ...workload, batch } })}`;
}

// isUsual reports whether a value is as it is without being said.
function isUsual(key: string, value: unknown): boolean {
  return key === 'packing' ? value === false : value === fields[key as keyof typeof fields]?.initial;
}

function json(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}
