/** Numbers as people read them, in addition to those of the whole page. */

export { bytes as formatBytes, count as formatCount } from '../format';
import { count } from '../format';

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
  return event < 0 ? 'before the first event' : `event ${count(event)}`;
}
