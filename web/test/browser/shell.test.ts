import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type Program, serve } from './program';

let program: Program;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  [program, browser] = await Promise.all([serve(), openBrowser()]);
  page = await browser.newPage();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

test('every page opens by its address and by its link', async () => {
  for (const name of ['Cards', 'Settings', 'Timeline', 'Study', 'History', 'Workers', 'Analyze']) {
    await page.goto(program.url);
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click();
    await page.locator('nav a[aria-current=page]', { hasText: name }).waitFor();
    await page.reload();
    await page.locator('nav a[aria-current=page]', { hasText: name }).waitFor();
  }
});

test('the theme can be changed and stays', async () => {
  await page.goto(program.url);
  expect(await page.locator('html').getAttribute('data-theme')).toBe('dark');
  await page.getByRole('button', { name: 'Use the light theme' }).click();
  await page.reload();
  expect(await page.locator('html').getAttribute('data-theme')).toBe('light');
});
