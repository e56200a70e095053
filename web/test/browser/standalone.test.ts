// The page that memorymark snapshot timeline writes, from a file: no server, no network.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, run } from './program';

const example = join(import.meta.dirname, '../../../examples/gpt2_oom.pickle.xz');
const folder = mkdtempSync(join(tmpdir(), 'memorymark-standalone-'));
const problems: string[] = [];

let browser: Browser;
let page: Page;

beforeAll(async () => {
  const file = join(folder, 'oom.html');
  run(['snapshot', 'timeline', example, '-o', file]);
  browser = await openBrowser();
  page = await browser.newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('request', (request) => !request.url().startsWith('file:') && problems.push(request.url()));
  await page.goto(pathToFileURL(file).href);
});

afterAll(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
  expect(problems).toEqual([]);
});

/** colors counts the colours in the middle of the plot. */
function colors(): Promise<number> {
  return page.locator('#plot').evaluate((plot: HTMLCanvasElement) => {
    const { data } = plot.getContext('2d')!.getImageData(plot.width / 4, plot.height / 4, plot.width / 2, plot.height / 2);
    return new Set(new Uint32Array(data.buffer)).size;
  });
}

test('it draws, and says what it draws', async () => {
  await expect.poll(colors).toBeGreaterThan(5);
  await expect.poll(() => page.locator('#facts').textContent()).toMatch(/^device 0 · [\d,]+ events · /);
  await expect.poll(() => page.locator('#groups').textContent()).toContain('optimizer state');
  await expect.poll(() => page.locator('#phases').textContent()).toContain('backward');
});

test('it says how the run died, and is light where the system is', async () => {
  const story = page.locator('#failure');
  await story.getByText('Out of memory at event 26,238').waitFor();
  await story.getByText(/A limit forbade it/).waitFor();
  await story.getByText('expandable_segments:True needs 7.498 GiB, gets past this request').waitFor();
  await story.getByText('the whole run may need more').waitFor();
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(ground).toBe('rgb(10, 10, 10)');
  await page.emulateMedia({ colorScheme: 'light' });
  await expect.poll(ground).toBe('rgb(246, 248, 247)');
  await expect.poll(colors).toBeGreaterThan(5);
});

test('a search counts what it finds', async () => {
  await page.fill('#search', '>20MiB');
  await expect.poll(() => page.locator('#matches').textContent()).toMatch(/^[1-9][\d,]* of [\d,]+$/);
  await page.fill('#search', '');
  await expect.poll(() => page.locator('#matches').textContent()).toBe('');
});

test('the allocation under the pointer is described, and stays when it is clicked', async () => {
  await page.locator('#peak').click();
  const plot = (await page.locator('#plot').boundingBox())!;
  await page.mouse.move(plot.x + plot.width / 2, plot.y + plot.height * 0.5);
  await expect.poll(() => page.locator('#details').textContent()).toContain('modeling_gpt2.py');
  await page.mouse.click(plot.x + plot.width / 2, plot.y + plot.height * 0.5);
  await page.mouse.move(0, 0);
  await page.evaluate(() => new Promise(requestAnimationFrame));
  expect(await page.locator('#details').textContent()).toContain('modeling_gpt2.py');
  await page.keyboard.press('Escape');
  await expect.poll(() => page.locator('#details').textContent()).toContain('Point at an allocation');
});
