/**
 * Where the allocator's segments lie on a map: all of them one after the other, as lines of text are, each line so
 * many bytes. A segment begins where the one before it ended, after a small gap; a long one continues in the next line.
 */

import type { SegmentRow } from './queries';

export type State = 'free' | 'used' | 'waiting';

const states: State[] = ['free', 'used', 'waiting'];

/** Block is a piece of a segment. */
export interface Block {
  segment: number; // index
  offset: number; // in the segment
  bytes: number;
  state: State;
  requested: number;
  allocation: number; // -1 for a free one
  color: number; // what it is for, as in a timeline
}

const numbersPerBlock = 6; // offset, bytes, state, requested, allocation, category

export function blocksOf(segments: SegmentRow[]): Block[] {
  return segments.flatMap(({ blocks }, segment) => {
    const out: Block[] = [];
    for (let i = 0; i + numbersPerBlock <= blocks.length; i += numbersPerBlock) {
      const [offset = 0, bytes = 0, state = 0, requested = 0, allocation = -1, color = 0] = blocks.slice(i, i + numbersPerBlock);
      out.push({ segment, offset, bytes, state: states[state] ?? 'used', requested, allocation, color });
    }
    return out;
  });
}

/** Bar is a part of a block in one line: from x to x + width, as shares of a line. */
export interface Bar {
  block: number; // index
  line: number;
  x: number;
  width: number;
  first: boolean; // of its block
  last: boolean;
}

export interface SegmentMapLayout {
  lines: number;
  bytesPerLine: number;
  bars: Bar[];
}

const gapShare = 0.004; // of a line, between segments

/** layoutOf spreads the blocks over at most that many lines. */
export function layoutOf(segments: SegmentRow[], blocks: Block[], mostLines: number): SegmentMapLayout {
  const total = segments.reduce((sum, s) => sum + s.bytes, 0);
  const gaps = segments.length * gapShare;
  // Gaps take space too: lines × (1 line) = total / bytesPerLine + gaps.
  const wanted = Math.max(1, mostLines - gaps);
  const bytesPerLine = Math.max(1, total / Math.max(1, Math.min(wanted, Math.ceil(total / (64 << 20)))));
  const starts: number[] = [];
  let at = 0;
  for (const s of segments) {
    starts.push(at);
    at += s.bytes / bytesPerLine + gapShare;
  }
  const bars = blocks.flatMap((b, i) => split(i, starts[b.segment]! + b.offset / bytesPerLine, b.bytes / bytesPerLine));
  return { lines: Math.max(1, Math.ceil(at - 1e-9)), bytesPerLine, bars };
}

/** split cuts a block where lines end. */
function split(block: number, start: number, length: number): Bar[] {
  const bars: Bar[] = [];
  const end = start + length;
  for (let from = start; from < end - 1e-9;) {
    const line = Math.floor(from + 1e-9);
    const to = Math.min(end, line + 1);
    bars.push({ block, line, x: Math.max(0, from - line), width: to - from, first: from === start, last: to === end });
    from = to;
  }
  return bars;
}

/** barAt finds what lies at a place of a line. */
export function barAt(layout: SegmentMapLayout, line: number, x: number): Bar | null {
  return layout.bars.find((b) => b.line === line && x >= b.x && x < b.x + b.width) ?? null;
}
