/** Timelines for tests: written as what is live when, stacked here, sent through the decoder. */

import { decode, type Timeline, type Wire } from './data';

/** Life is an allocation: size in bytes, from a moment to another (excluded), both counted from 0. */
export interface Life {
  size: number;
  from: number;
  to: number;
  group?: number;
  frames?: string[];
}

/** timelineOf stacks lives in their order over that many moments, one column each. */
export function timelineOf(moments: number, lives: Life[], change: Partial<Wire> = {}): Timeline {
  const tops = Array.from({ length: moments }, () => 0);
  const frames: string[] = [];
  const stacks: number[][] = [[]];
  const shapes = lives.map((life, id) => {
    if (life.frames) stacks.push(life.frames.map((f) => frames.push(f) - 1));
    const row = [id, life.size, life.group ?? 0, life.frames ? stacks.length - 1 : 0, life.from - 1, life.to < moments ? life.to - 1 : -1, life.to];
    let column = 0;
    let offset = 0;
    for (let c = life.from; c < life.to; c++) {
      if (c === life.from || tops[c]! !== offset) {
        row.push(c - column, tops[c]! - offset);
        [column, offset] = [c, tops[c]!];
      }
      tops[c]! += life.size;
    }
    return row;
  });
  const groups = Math.max(0, ...lives.map((l) => l.group ?? 0)) + 1;
  const peak = tops.indexOf(Math.max(...tops));
  return decode({
    from: 0,
    to: moments - 1,
    events: moments - 1,
    device: 0,
    lost: 0,
    peak: { column: peak, event: peak - 1, bytes: tops[peak]!, elapsed: 0 },
    moments: differences(tops.map((_, m) => m - 1)),
    active: differences(tops),
    groups: Array.from({ length: groups }, (_, g) => ({ label: `group ${g}`, color: g + 1, count: 0, at_peak: 0, mean: 0 })),
    shapes,
    bands: [],
    spans: [],
    failures: [],
    stacks,
    frames,
    ...change,
  });
}

export function differences(values: number[]): number[] {
  return values.map((v, i) => v - (i ? values[i - 1]! : 0));
}
