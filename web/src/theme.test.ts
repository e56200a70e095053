import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const css = readFileSync(join(import.meta.dirname, 'theme.css'), 'utf8');

function tokens(theme: string): Map<string, string> {
  const block = css.split(`:root[data-theme='${theme}'] {`)[1]?.split('}')[0] ?? '';
  return new Map([...block.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)].map((m) => [m[1]!, m[2]!]));
}

// Contrast as WCAG 2.2 defines it.
function contrast(a: string, b: string): number {
  const [light, dark] = [luminance(a), luminance(b)].toSorted((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

function luminance(hex: string): number {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const c = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

const texts = ['text', 'muted', 'faint', 'accent-text', 'good-text', 'bad-text', 'warn-text', 'info-text'];
const pairs = [
  ...['bg', 'surface', 'raised'].flatMap((ground) => texts.map((text) => [text, ground])),
  ...['accent', 'bad', 'warn'].map((name) => [`${name}-text`, `${name}-soft`]),
  ['muted', 'bad-soft'],
  ['on-accent', 'accent'],
] as [string, string][];

test.each(['dark', 'light'])('text can be read in the %s theme', (theme) => {
  const colors = tokens(theme);
  for (const [text, ground] of pairs) {
    expect(contrast(colors.get(text)!, colors.get(ground)!), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5);
  }
});

test('both themes define the same tokens', () => {
  expect([...tokens('light').keys()]).toEqual([...tokens('dark').keys()]);
  expect(tokens('dark').get('bg')).toBe('#0a0a0a');
  expect(tokens('dark').get('accent')).toBe('#00ff88');
});

// The hue of a colour in degrees, undefined for grey.
function hue(hex: string): number | undefined {
  const [r, g, b] = [1, 3, 5].map((at) => Number.parseInt(hex.slice(at, at + 2), 16)) as [number, number, number];
  const most = Math.max(r, g, b);
  const range = most - Math.min(r, g, b);
  if (range < 60) return undefined;
  const sixth = most === r ? ((g - b) / range + 6) % 6 : most === g ? (b - r) / range + 2 : (r - g) / range + 4;
  return sixth * 60;
}

test.each(['dark', 'light'])('no cause of memory looks like a verdict in the %s theme', (theme) => {
  const colors = tokens(theme);
  const verdicts = ['good-text', 'warn-text', 'bad-text'].map((name) => hue(colors.get(name)!)!);
  for (const [name, color] of colors) {
    const own = name.startsWith('cause-') ? hue(color) : undefined;
    if (own === undefined) continue;
    for (const verdict of verdicts) expect(Math.min(Math.abs(own - verdict), 360 - Math.abs(own - verdict)), name).toBeGreaterThan(20);
  }
});
