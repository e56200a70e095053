// Pictures of every page for the documentation, and to be looked at: wide and
// dark, wide and light, and as narrow as a phone. PAGES chooses some by name,
// INTO another folder.
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import { openBrowser, type Program, serve } from './browser/program';
import { shots } from './shots';

const into = resolve(process.env.INTO ?? join(import.meta.dirname, '../../docs/images'));
const chosen = process.env.PAGES?.split(',');
const looks = [
  { name: 'dark', theme: 'dark', width: 1440, height: 1000 },
  { name: 'light', theme: 'light', width: 1440, height: 1000 },
  { name: 'phone', theme: 'dark', width: 390, height: 844 },
];

let program: Program;
let browser: Browser;

beforeAll(async () => {
  mkdirSync(into, { recursive: true });
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
    await page.screenshot({ path: join(into, `page-${shot.name}-${name}.png`), fullPage: !shot.onlyWindow });
    await context.close();
  });
}
