// Objects in an address, without JSON: a key for each value, as in parallel.gpus=8. A list is its values with commas,
// also behind a single one; text that would read as something else begins with an apostrophe.

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** flat is a value as keys and texts of an address. */
export function flat(key: string, value: Json): [key: string, text: string][] {
  if (Array.isArray(value)) {
    const texts = value.map((each) => (typeof each === 'object' && each !== null ? ',' : textOf(each)));
    if (texts.every((text) => !text.includes(','))) return [[key, `${texts.join(',')}${texts.length < 2 ? ',' : ''}`]];
    return value.flatMap((each, index) => flat(`${key}.${index}`, each));
  }
  if (typeof value !== 'object' || value === null) return [[key, textOf(value)]];
  return Object.entries(value).flatMap(([name, each]) => flat(`${key}.${name}`, each));
}

function textOf(value: string | number | boolean | null): string {
  if (typeof value !== 'string') return String(value);
  return value !== '' && plainOf(value) === value && !/[',]/.test(value) ? value : `'${value}`;
}

/** valueOf is what flat made a text of. */
export function valueOf(text: string): Json {
  if (text.startsWith("'")) return text.slice(1);
  if (!text.includes(',')) return plainOf(text);
  const texts = text.split(',');
  if (texts.at(-1) === '') texts.pop();
  return texts.filter((each, index) => each !== '' || index > 0).map((each) => (each.startsWith("'") ? each.slice(1) : plainOf(each)));
}

function plainOf(text: string): string | number | boolean | null {
  if (text === 'null') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  return /^-?\d/.test(text) && Number.isFinite(Number(text)) ? Number(text) : text;
}

/** nested puts a value where its key says: parallel.gpus into gpus of an object. */
export function nested(into: Record<string, Json>, path: string[], value: Json) {
  const [first = '', ...rest] = path;
  if (rest.length === 0) {
    into[first] = value;
    return;
  }
  const there = into[first];
  const inner = typeof there === 'object' && there !== null && !Array.isArray(there) ? there : {};
  into[first] = inner;
  nested(inner, rest, value);
}

/** listed makes lists of the objects whose keys are 0, 1, 2 and so on. */
export function listed(value: Json): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const entries = Object.entries(value).map(([key, each]) => [key, listed(each)] as const);
  const isList = entries.length > 0 && entries.every(([key], index) => key === String(index));
  return isList ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}
