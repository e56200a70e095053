// Numbers as text for people. This is the page's one formatter; it makes no new
// numbers, and amounts look as the command line prints them.

const units = [
  ['TiB', 2 ** 40],
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const;

/** bytes is an amount of memory, as 2.47 GiB. */
export function bytes(n: number): string {
  for (const [name, size] of units) {
    if (Math.abs(n) >= size) return `${hundredths(n, size)} ${name}`;
  }
  return `${n} B`;
}

// hundredths are even where two are equally near, as in Go and Python: toFixed takes the larger.
function hundredths(n: number, size: number): string {
  const halves = (200 * n) / size;
  const between = Number.isInteger(halves) && halves % 2 !== 0 && Math.floor(halves / 2) % 2 === 0;
  return (between ? Math.floor(halves / 2) / 100 : n / size).toFixed(2);
}

/** gib is an amount in GiB, for axes. */
export function gib(n: number): number {
  return n / 2 ** 30;
}

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** count is a whole number, as 109,483,778. */
export function count(n: number): string {
  return whole.format(n);
}

/** rate is a number of samples or tokens a second, with four digits, so that two of them differ. */
export function rate(n: number): string {
  return new Intl.NumberFormat('en-US', n < 1000 ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 0 }).format(n);
}

/** factor is how many times, as 1.43×. */
export function factor(n: number): string {
  return `${n.toFixed(2)}×`;
}

/** dollars is an amount of money; small ones keep their cents. */
export function dollars(n: number): string {
  const cents = Math.abs(n) < 1000;
  return new Intl.NumberFormat('en-US', {
    style: 'currency',
    currency: 'USD',
    minimumFractionDigits: cents ? 2 : 0,
    maximumFractionDigits: cents ? 2 : 0,
  }).format(n);
}

/** percent is a share of a hundred, as 11 %. */
export function percent(n: number): string {
  return `${whole.format(n)} %`;
}

/** share is a fraction as a percentage with two figures, as 0.71 %. */
export function share(fraction: number): string {
  return `${Number((fraction * 100).toPrecision(2))} %`;
}

/** seconds is a short time, as 99.9 ms or 2.33 s. */
export function seconds(n: number): string {
  return n < 1 ? `${(n * 1000).toPrecision(3)} ms` : `${n.toFixed(2)} s`;
}

/** moment is a time of day, with the date when it is not today. */
export function moment(time: string, now = new Date()): string {
  const at = new Date(time);
  const clock = at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
  if (at.toDateString() === now.toDateString()) return clock;
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, '0')}-${String(at.getDate()).padStart(2, '0')} ${clock.slice(0, 5)}`;
}

/** article is a card's name with its article. */
export function article(name: string): string {
  return name === 'CPU' ? 'this CPU' : `an ${name}`;
}

/** price is what little of something costs: below ten cents it has the four decimals that the API rounds to, as $0.0210. */
export function price(n: number): string {
  return n === 0 || n >= 0.1 ? dollars(n) : `$${n.toFixed(4)}`;
}

/** duration is a long time, given in hours, as 40 min, 25.4 h or 12.3 days. */
export function duration(hours: number): string {
  if (hours < 1) return `${Number((hours * 60).toPrecision(2))} min`;
  if (hours < 100) return `${Number(hours.toPrecision(3))} h`;
  return `${Number((hours / 24).toPrecision(3))} days`;
}
