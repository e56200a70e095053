/** A range of events that one selected, as the address has it. */

import type { View } from './view';

/** Range is events, to excluded. */
export interface Range {
  from: number;
  to: number;
}

export function rangeOf(text: string): Range | null {
  const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(text) ?? [];
  return from !== undefined && Number(to) > Number(from) ? { from: Number(from), to: Number(to) } : null;
}

export function rangeText({ from, to }: Range): string {
  return `${from}..${to}`;
}

/** rangeBetween is the events between two places on the x axis, at least one; place p shows the moment after event p - 1. */
export function rangeBetween(a: number, b: number, events: number): Range {
  const from = Math.min(Math.max(0, Math.floor(Math.min(a, b)) - 1), events - 1);
  const to = Math.min(Math.max(from + 1, Math.ceil(Math.max(a, b)) - 1), events);
  return { from, to };
}

export function rangeSeen({ x0, x1 }: View, events: number): Range {
  return rangeBetween(x0, x1, events);
}
