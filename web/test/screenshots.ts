// Pictures of every page, to be looked at: wide and as narrow as a phone, dark
// and light, in build/screenshots. PAGES chooses some by name.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import { openBrowser, type Program, serve } from './browser/program';
import { shots } from './shots';

const folder = resolve(import.meta.dirname, '../../build/screenshots');
const chosen = process.env.PAGES?.split(',');
const looks = [
  { name: 'dark', theme: 'dark', width: 1440, height: 1000 },
  { name: 'light', theme: 'light', width: 1440, height: 1000 },
  { name: 'phone', theme: 'dark', width: 390, height: 844 },
  { name: 'phone-light', theme: 'light', width: 390, height: 844 },
];

let program: Program;
let browser: Browser;

beforeAll(async () => {
  mkdirSync(folder, { recursive: true });
  [program, browser] = await Promise.all([serve(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

for (const shot of shots.filter(({ name }) => !chosen || chosen.includes(name))) {
  test.each(looks)(`${shot.name}, $name`, async ({ name, theme, width, height }) => {
    const context = await browser.newContext({ viewport: { width, height }, reducedMotion: 'reduce' });
    await context.addInitScript((value) => localStorage.setItem('memorymark.theme', value), theme);
    const page = await context.newPage();
    await page.goto(program.url + shot.path);
    await shot.ready(page, program.url);
    const picture = `${shot.name}-${name}`;
    await page.screenshot({ path: join(folder, `page-${picture}.png`), fullPage: !shot.onlyWindow });
    await context.close();
  });
}
