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
  for (const name of ['Cards', 'Combinations', 'Timeline', 'Study', 'History', 'Workers', 'Analyze']) {
    await page.goto(program.url);
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click();
    await page.locator('nav a[aria-current=page]', { hasText: name }).waitFor();
    await page.reload();
    await page.locator('nav a[aria-current=page]', { hasText: name }).waitFor();
  }
});

test('the theme can be changed and stays', async () => {
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(program.url);
  await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('dark');
  await page.getByRole('button', { name: 'Use the light theme' }).click();
  await page.reload();
  await expect.poll(() => page.locator('html').getAttribute('data-theme')).toBe('light');
});

const link = (name: string) => page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true });

test('a page whose code does not arrive leaves the rest alive, and is fetched again when one goes there again', async () => {
  await page.goto(program.url);
  await page.route('**/assets/CardsPage*', (route) => route.abort());
  await link('Cards').click();
  await page.getByRole('alert').getByText('This page could not be loaded').waitFor();
  await link('Workers').click();
  await page.getByRole('heading', { name: 'Workers', level: 1 }).waitFor();
  await page.unroute('**/assets/CardsPage*');
  await link('Cards').click();
  await page.getByRole('heading', { name: 'Cards', level: 1 }).waitFor();
});

test('a page that was looked for while the server was away comes when it is back', async () => {
  await page.goto(program.url);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.route('**', (route) => route.abort());
  await link('Combinations').click();
  await page.getByRole('alert').getByText('This page could not be loaded').waitFor();
  await page.getByText('The server does not answer. Start it again').waitFor();
  await page.unroute('**');
  await page.locator('nav a[aria-current=page]', { hasText: 'Combinations' }).waitFor();
  await expect.poll(() => page.getByRole('alert').count()).toBe(0);
  await page.getByRole('heading', { level: 1 }).waitFor();
});

test('the page of the API is linked, fits a phone and follows the theme', async () => {
  const phone = await (await browser.newContext({ viewport: { width: 390, height: 844 }, colorScheme: 'light' })).newPage();
  await phone.goto(program.url);
  await phone.getByRole('contentinfo').getByRole('link', { name: 'API' }).click();
  await phone.getByRole('heading', { level: 1, name: /API/ }).waitFor();
  expect(await phone.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
  expect(await phone.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(246, 248, 247)');
  await phone.emulateMedia({ colorScheme: 'dark' });
  expect(await phone.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe('rgb(10, 10, 10)');
  await phone.getByRole('link', { name: 'MemoryMark' }).click();
  await phone.getByText('Will it fit?').waitFor();
  await phone.context().close();
});
