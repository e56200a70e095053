/** Numbers as people read them. Memory is in IEC units, like everywhere in MemoryMark. */

const units: [string, number][] = [
  ['TiB', 1024 ** 4],
  ['GiB', 1024 ** 3],
  ['MiB', 1024 ** 2],
  ['KiB', 1024],
];

export function formatBytes(n: number): string {
  const sign = n < 0 ? '−' : '';
  const size = Math.abs(n);
  for (const [name, unit] of units) if (size >= unit) return `${sign}${(size / unit).toFixed(2)} ${name}`;
  return `${sign}${size} B`;
}

export function formatCount(n: number): string {
  return n.toLocaleString('en-US');
}

function trim(v: number): string {
  return String(Number(v.toFixed(3)));
}

export function formatMicros(micros: number): string {
  if (micros === 0) return '0';
  if (micros < 1000) return `${trim(micros)} µs`;
  if (micros < 1e6) return `${trim(micros / 1e3)} ms`;
  return `${trim(micros / 1e6)} s`;
}

export function formatAddress(address: number): string {
  return `0x${address.toString(16)}`;
}

/** formatMoment names the moment after an event. */
export function formatMoment(event: number): string {
  return event < 0 ? 'before the first event' : `event ${formatCount(event)}`;
}
