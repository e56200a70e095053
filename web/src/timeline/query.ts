/**
 * What people type to find allocations: "20MiB" is a size (within 1 %), ">100MiB", "<1KiB" and
 * "1MiB..2MiB" are ranges, "0x7f…" is an address, "#12" an allocation's number, and anything else a part
 * of a frame. The server finds the events; the page needs the same meaning for what it highlights.
 */

import type { Timeline } from './data';

export type Query =
  | { kind: 'size'; min: number; max: number } // bytes; max may be Infinity
  | { kind: 'address'; address: string }
  | { kind: 'allocation'; id: number }
  | { kind: 'frame'; text: string };

const amount = String.raw`([0-9]*\.?[0-9]+)\s*([kmgt]?)(?:i?b)?`;
const single = new RegExp(`^([<>]?)=?\\s*${amount}$`, 'i');
const range = new RegExp(`^${amount}\\s*(?:\\.\\.|-|–)\\s*${amount}$`, 'i');

export function parseQuery(text: string): Query | null {
  text = text.trim();
  if (!text) return null;
  if (/^0x[0-9a-f]+$/i.test(text)) return { kind: 'address', address: text.toLowerCase() };
  const number = /^#(\d+)$/.exec(text);
  if (number) return { kind: 'allocation', id: Number(number[1]!) };
  return parseSize(text) ?? { kind: 'frame', text };
}

function parseSize(text: string): Query | null {
  const both = range.exec(text);
  if (both) return { kind: 'size', min: bytes(both[1]!, both[2]!), max: bytes(both[3]!, both[4]!) };
  const one = single.exec(text);
  if (!one) return null;
  const value = bytes(one[2]!, one[3]!);
  if (one[1] === '>') return { kind: 'size', min: value, max: Infinity };
  if (one[1] === '<') return { kind: 'size', min: 0, max: value };
  return { kind: 'size', min: Math.ceil(value * 0.99), max: Math.floor(value * 1.01) };
}

const alone = new RegExp(`^${amount}$`, 'i');

/** parseBytes reads an amount as people write it, null if it is none. */
export function parseBytes(text: string): number | null {
  const found = alone.exec(text.trim());
  return found && bytes(found[1]!, found[2]!);
}

function bytes(number: string, unit: string): number {
  return Math.round(Number(number) * 1024 ** Math.max(0, 'kmgt'.indexOf(unit.toLowerCase() || '-') + 1));
}

/**
 * matcher returns which shapes of a window a query means. An address is not among what a window holds: the
 * server names the allocations that were there.
 */
export function matcher(t: Timeline, query: Query, atAddress: ReadonlySet<number>): (shape: number) => boolean {
  const { id, size, stack, group } = t.shapes;
  switch (query.kind) {
    case 'size':
      return (s) => size[s]! >= query.min && size[s]! <= query.max;
    case 'allocation':
      return (s) => id[s] === query.id;
    case 'address':
      return (s) => atAddress.has(id[s]!);
    case 'frame': {
      const text = query.text.toLowerCase();
      const frames = t.frames.map((f) => f.toLowerCase().includes(text));
      const stacks = t.stacks.map((frame) => frame.some((f) => frames[f]!));
      const groups = t.groups.map((g) => g.label.toLowerCase().includes(text));
      return (s) => stacks[stack[s]!]! || groups[group[s]!]!;
    }
  }
}
