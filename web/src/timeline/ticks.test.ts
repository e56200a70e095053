import { describe, expect, test } from 'vitest';
import { byteTicks, eventTicks, roundStep, timeTicks } from './ticks';

const GiB = 1024 ** 3;

describe('ticks', () => {
  test('are round', () => {
    expect(roundStep(100, 5)).toBe(20);
    expect(roundStep(9, 4)).toBe(2.5);
    expect(roundStep(0.7, 10)).toBeCloseTo(0.1);
  });

  test('of bytes count in one unit', () => {
    expect(byteTicks(0, 22.1 * GiB, 5).map((t) => t.label)).toEqual(['0', '5 GiB', '10 GiB', '15 GiB', '20 GiB']);
    expect(byteTicks(1.2 * GiB, 1.5 * GiB, 3).map((t) => t.label)).toEqual(['1.2 GiB', '1.3 GiB', '1.4 GiB', '1.5 GiB']);
    expect(byteTicks(0, 3, 10).map((t) => t.label)).toEqual(['0', '1 B', '2 B', '3 B']);
  });

  test('of events stand at the moment after them', () => {
    expect(eventTicks(0, 101, 5)).toEqual([0, 25, 50, 75].map((e) => ({ at: e + 1, label: String(e) })));
    expect(eventTicks(5000.5, 5004, 2).map((t) => t.label)).toEqual(['5,000', '5,002']);
  });

  test('of time stand where events reach them, roundest first', () => {
    const even = Float64Array.from({ length: 101 }, (_, i) => i * 1000);
    expect(timeTicks(even, 0, 100, 40)).toEqual([
      { column: 0, micros: 0 },
      { column: 50, micros: 50_000 },
      { column: 100, micros: 100_000 },
    ]);
    const pause = Float64Array.from({ length: 101 }, (_, i) => (i < 50 ? i : 1_000_000 + i));
    expect(timeTicks(pause, 0, 100, 20).map((t) => t.column)).toContain(50);
    expect(timeTicks(pause, 0, 100, 20).filter((t) => t.micros > 50 && t.micros < 1_000_000)).toEqual([]);
  });
});
