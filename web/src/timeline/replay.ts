/**
 * Other settings of the allocator, in the words of "memorymark snapshot replay". They are in the address,
 * so that a link asks the same again.
 */

import { parseBytes } from './query';

/** WhatIf is what people typed; an empty value leaves a setting as it was recorded. */
export interface WhatIf {
  limit: string;
  'expandable-segments': string;
  'max-split-size': string;
  'gc-threshold': string;
  roundup: string;
  'graph-pool': string;
}

export type Flag = keyof WhatIf;

export const flags: Flag[] = ['limit', 'expandable-segments', 'max-split-size', 'gc-threshold', 'roundup', 'graph-pool'];

/** addressKey keeps a flag apart from the workload's keys, which may be in the same address. */
export function addressKey(flag: Flag): string {
  return `replay-${flag}`;
}

export function whatIfOf(get: (key: string) => string): WhatIf {
  return Object.fromEntries(flags.map((flag) => [flag, get(addressKey(flag))])) as Record<Flag, string> as WhatIf;
}

/** ReplayQuery is what the API is asked. */
export interface ReplayQuery {
  limit_bytes?: number;
  expandable_segments?: 'true' | 'false';
  max_split_size_bytes?: number;
  gc_threshold?: number;
  roundup?: number;
  graph_pool_bytes?: number;
}

/** replayQuery is a WhatIf for the API, or what cannot be read in it. Whether the values make sense is for the server to say. */
export function replayQuery(asked: WhatIf): ReplayQuery | { wrong: Flag; why: string } {
  const query: ReplayQuery = {};
  for (const [flag, key] of [['limit', 'limit_bytes'], ['max-split-size', 'max_split_size_bytes'], ['graph-pool', 'graph_pool_bytes']] as const) {
    const amount = parseBytes(asked[flag]);
    if (asked[flag] && amount === null) return { wrong: flag, why: 'Enter an amount, such as 24GiB or 512MiB.' };
    if (amount !== null) query[key] = amount;
  }
  for (const [flag, key] of [['gc-threshold', 'gc_threshold'], ['roundup', 'roundup']] as const) {
    if (!asked[flag]) continue;
    if (!Number.isFinite(Number(asked[flag]))) return { wrong: flag, why: 'Enter a number.' };
    query[key] = Number(asked[flag]);
  }
  if (asked['expandable-segments']) query.expandable_segments = asked['expandable-segments'] === 'true' ? 'true' : 'false';
  return query;
}

/** commandOf is the command that asks the same of a file. */
export function commandOf(asked: WhatIf): string {
  const given = flags
    .filter((flag) => asked[flag])
    .map((flag) => (flag === 'expandable-segments' ? `--${flag}${asked[flag] === 'true' ? '' : '=false'}` : `--${flag} ${asked[flag]}`));
  return ['memorymark snapshot replay FILE', ...given].join(' ');
}
