// A server beyond loopback asks for a token, and the page asks the person.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createToken, openBrowser, type Program, serve } from './program';

const data = mkdtempSync(join(tmpdir(), 'memorymark-page-'));
const token = createToken(data, 'alice');

let program: Program;
let browser: Browser;
let page: Page;
let url: string;

beforeAll(async () => {
  [program, browser] = await Promise.all([serve({ listen: '0.0.0.0:0', data }), openBrowser()]);
  url = `http://127.0.0.1:${new URL(program.url).port}`;
  page = await browser.newPage();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
  rmSync(data, { recursive: true, force: true });
});

const dialog = () => page.getByRole('dialog', { name: 'Log in' });

test('a wrong token is refused, the right one opens the page and stays', async () => {
  await page.goto(`${url}/?model=distilbert&gpu=t4`);
  await dialog().getByText('memorymark serve token create NAME').waitFor();
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute('name'))).toBe('token');
  await dialog().getByLabel('Token').fill('wrong');
  await page.keyboard.press('Enter');
  await dialog().getByRole('alert').waitFor();
  expect(await page.getByText('Largest batch').count()).toBe(0);

  await dialog().getByLabel('Token').fill(token);
  await dialog().getByRole('button', { name: 'Log in' }).click();
  await dialog().waitFor({ state: 'detached' });
  const headline = page.getByRole('heading', { level: 1 });
  await expect.poll(() => headline.textContent()).toMatch(/^Yes: /); // what was asked for is answered now

  await page.reload();
  await expect.poll(() => headline.textContent()).toMatch(/^Yes: /);
  expect(await dialog().count()).toBe(0);
  expect(await page.evaluate(() => document.cookie)).toBe(''); // scripts cannot read it
});

test('who logs out sees nothing until they log in again', async () => {
  await page.goto(`${url}/history`);
  await page.getByText('Nothing yet').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByText('people with a token').waitFor();
  await expect.poll(() => page.getByText('Nothing yet').count()).toBe(0);
  expect(await page.context().cookies()).toEqual([]);
  await expect.poll(() => page.getByRole('button', { name: 'Log out' }).count()).toBe(0);
  await page.getByRole('button', { name: 'Log in' }).click();
  await dialog().getByLabel('Token').fill(token);
  await page.keyboard.press('Enter');
  await page.getByText('Nothing yet').waitFor();
});

test('who is locked out is asked once, and can say no and come back', async () => {
  await page.goto(`${url}/history`);
  await page.getByText('Nothing yet').waitFor();
  await page.context().clearCookies();
  await dialog().waitFor(); // the history is asked for every few seconds
  await dialog().getByRole('button', { name: 'Not now' }).click();
  await dialog().waitFor({ state: 'detached' });
  await page.waitForResponse((response) => response.url().includes('/v1/analyses') && response.status() === 401);
  expect(await dialog().count()).toBe(0);
  await page.getByRole('button', { name: 'Log in' }).click();
  await dialog().waitFor();
  await page.keyboard.press('Escape');
  await dialog().waitFor({ state: 'detached' });
});
