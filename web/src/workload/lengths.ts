// The lengths of samples as files have them: a number on each line, or JSON.
import type { Workload } from '../api/client';

export type Lengths = NonNullable<Workload['lengths']>;

/** parseLengths counts the samples of each length, or says what is wrong. */
export function parseLengths(text: string): Record<string, number> | string {
  const trimmed = text.trim();
  if (trimmed.startsWith('{')) return parseCounts(trimmed);
  const words = trimmed.replace(/^\[|\]$/g, '').split(/[\s,]+/).filter(Boolean);
  if (words.length === 0) return 'It contains no numbers.';
  const counts: Record<string, number> = {};
  for (const word of words) {
    if (!/^\d+$/.test(word)) return `“${word.slice(0, 20)}” is not a number of tokens.`;
    counts[Number(word)] = (counts[Number(word)] ?? 0) + 1;
  }
  return counts;
}

function parseCounts(text: string): Record<string, number> | string {
  try {
    const value = JSON.parse(text) as Record<string, number>;
    if (Object.entries(value).some(([length, samples]) => !/^\d+$/.test(length) || !Number.isInteger(samples))) {
      return 'It must say how many samples each length has, as {"128": 900, "512": 40}.';
    }
    return value;
  } catch (error) {
    return `This is not JSON: ${(error as Error).message}`;
  }
}

/** describeLengths is how many samples there are, and of which lengths. */
export function describeLengths(lengths: Lengths): string {
  const all = Array.isArray(lengths) ? lengths : Object.keys(lengths).map(Number);
  const samples = Array.isArray(lengths) ? lengths.length : Object.values(lengths).reduce((sum, n) => sum + n, 0);
  return `${samples.toLocaleString('en-US')} samples of ${Math.min(...all)} to ${Math.max(...all)} tokens`;
}
