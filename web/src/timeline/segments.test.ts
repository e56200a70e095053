import { expect, test } from 'vitest';
import type { SegmentRow } from './queries';
import { barAt, blocksOf, layoutOf } from './segments';

const MiB = 1 << 20;

function segment(...blocks: [bytes: number, state: number, allocation: number][]): SegmentRow {
  let offset = 0;
  const numbers = blocks.flatMap(([bytes, state, allocation]) => {
    const row = [offset, bytes, state, state ? bytes - 1 : 0, allocation, 5];
    offset += bytes;
    return row;
  });
  return { address: 0x7f0000000000, bytes: offset, stream: 0, blocks: numbers };
}

const segments = [segment([2 * MiB, 1, 7], [18 * MiB, 0, -1]), segment([60 * MiB, 1, 8], [60 * MiB, 2, 9])];

test('blocks are unpacked', () => {
  const blocks = blocksOf(segments);
  expect(blocks).toHaveLength(4);
  expect(blocks[1]!).toEqual({ segment: 0, offset: 2 * MiB, bytes: 18 * MiB, state: 'free', requested: 0, allocation: -1, color: 5 });
  expect(blocks.map((b) => b.state)).toEqual(['used', 'free', 'used', 'waiting']);
});

test('all bytes are on the map, in order and without overlap', () => {
  for (const lines of [1, 3, 20]) {
    const layout = layoutOf(segments, blocksOf(segments), lines);
    const bytes = layout.bars.reduce((sum, b) => sum + b.width * layout.bytesPerLine, 0);
    expect(bytes).toBeCloseTo(140 * MiB, -3);
    for (const [i, bar] of layout.bars.entries()) {
      expect(bar.x + bar.width).toBeLessThanOrEqual(1 + 1e-9);
      const next = layout.bars[i + 1]!;
      if (next) expect(next.line + next.x).toBeGreaterThanOrEqual(bar.line + bar.x + bar.width - 1e-9);
    }
  }
});

test('what lies at a place is found', () => {
  const blocks = blocksOf(segments);
  const layout = layoutOf(segments, blocks, 3);
  expect(blocks[barAt(layout, 0, 0)!.block]!.allocation).toBe(7);
  expect(barAt(layout, 99, 0)).toBeNull();
});

test('an empty allocator has a map', () => {
  expect(layoutOf([], [], 10)).toEqual({ lines: 1, bytesPerLine: 1, bars: [] });
});
