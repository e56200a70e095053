const powers: Record<string, number> = { '': 1, k: 1e3, m: 1e6, b: 1e9, g: 1e9, t: 1e12 };

/** amountOf reads how many as people write it: 1B, 300M, 1.5 T, 1e9, 1,000,000. Undefined is what says no number. */
export function amountOf(text: string): number | undefined {
  const found = /^(\d+(?:\.\d+)?(?:e\d+)?|\.\d+)([kmbgt]?)$/.exec(text.trim().toLowerCase().replace(/[\s,_]/g, ''));
  if (!found) return undefined;
  const amount = Number(found[1]) * powers[found[2]!]!;
  return Number.isFinite(amount) ? Math.round(amount) : undefined;
}
