// The site of plain files, in a sub-folder of a host that knows nothing: the engine in the browser, pages
// without JavaScript, and a second visit without a network.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { HtmlValidate, StaticConfigLoader } from 'html-validate';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { folder, type Host, openHost } from './host';
import { nearly, openBrowser, predictions } from './program';

let host: Host;
let browser: Browser;
let home: string;

beforeAll(async () => {
  [host, browser] = await Promise.all([openHost(), openBrowser()]);
  home = host.home;
});

afterAll(async () => {
  await browser?.close();
  host?.close();
});

/** ask asks the engine of a page, in a worker of its own, and says how long the first answer took once it was loaded. */
function ask(page: Page, questions: unknown[]) {
  return page.evaluate(async (asked) => {
    const worker = new Worker('engine/engine.js');
    let waiting: ((value: { status: number; body: ArrayBuffer }) => void) | undefined;
    worker.addEventListener('message', ({ data }) => waiting!(data));
    const send = (method: string, target: string, body: string) =>
      new Promise<{ status: number; body: ArrayBuffer }>((done) => {
        waiting = done;
        // A worker has no origin to name.
        // oxlint-disable-next-line unicorn/require-post-message-target-origin
        worker.postMessage({ id: 1, method, target, body: new TextEncoder().encode(body).buffer });
      });
    await send('GET', '/v1/gpus', '');
    const answers = [];
    let first = 0;
    for (const question of asked) {
      const began = performance.now();
      const { status, body } = await send('POST', '/v1/predictions', JSON.stringify(question));
      first ||= performance.now() - began;
      answers.push({ status, body: JSON.parse(new TextDecoder().decode(body)) });
    }
    worker.terminate();
    return { answers, first };
  }, questions);
}

/** Forty questions: families, precisions, optimizers, adapters, quantization, parallelism, cards. */
function fortyQuestions() {
  const models = ['bert', 'gpt2', 'distilbert', 'llama-3.2-1b', 't5-small', 'vit', 'resnet50', 'qwen3-0.6b', 'whisper-tiny', 'pythia-160m'];
  const settings = [
    { gpu: 'a10', batch: 4 },
    { gpu: 't4', batch: 2, precision: 'amp-fp16', optimizer: 'sgd' },
    { gpu: 'rtx-4090', batch: 8, checkpointing: true, optimizer: 'adamw-8bit' },
    { gpu: 'h100', batch: 3, precision: 'bf16', accumulate: 2 },
  ];
  return models.flatMap((model) => settings.map((setting) => ({ ...setting, model })));
}

test('the engine gives the figures of the binary', async () => {
  const page = await browser.newPage();
  await page.goto(home);
  const asked = fortyQuestions();
  expect(asked).toHaveLength(40);
  const { answers } = await ask(page, asked);
  const lines = predictions(asked);
  let predicted = 0;
  for (const [i, line] of lines.entries()) {
    const binary = JSON.parse(line);
    const { status, body } = answers[i]!;
    if (binary.error !== undefined) {
      expect(status, line).toBe(422);
      continue;
    }
    predicted++;
    expect(body, JSON.stringify(asked[i])).toMatchObject(nearly(binary) as object);
  }
  expect(predicted).toBeGreaterThanOrEqual(32);
  await page.close();
});

test('it is small, and the first answer comes within a second', async () => {
  expect(gzipSync(readFileSync(join(folder, 'engine/engine.wasm')), { level: 9 }).length).toBeLessThan(4_000_000);
  const page = await browser.newPage();
  await page.goto(home);
  const times = [];
  for (let i = 0; i < 3; i++) times.push((await ask(page, [{ model: 'bert', gpu: 'a10', batch: 8 }])).first); // the machine may be busy
  console.info(`first answer after ${times.map((t) => t.toFixed(0)).join(', ')} ms`);
  expect(Math.min(...times)).toBeLessThan(1000);
  await page.close();
});

test('the page answers without a server, and again without a network', async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const failed: string[] = [];
  page.on('pageerror', (error) => failed.push(error.message));
  page.on('response', (response) => response.status() >= 400 && failed.push(response.url()));
  await page.goto(`${home}?model=gpt2&gpu=a10&batch=8`);
  const answered = () => page.locator('main').textContent();
  await expect.poll(answered).toMatch(/GiB/);
  await page.evaluate(async () => {
    await navigator.serviceWorker.ready;
  });
  await context.setOffline(true);
  await page.goto(`${home}?model=bert&gpu=t4&batch=8`);
  await expect.poll(answered).toMatch(/GiB/);
  await page.goto(`${home}cards/`);
  await expect.poll(answered).toMatch(/H100/);
  expect(failed).toEqual([]);
  await context.close();
});

test('a site of plain files offers nothing that needs a server', async () => {
  const page = await browser.newPage();
  const left: string[] = [];
  page.on('request', (request) => request.method() !== 'GET' && left.push(request.url()));
  await page.goto(`${home}?model=gpt2&gpu=a10&batch=8`);
  await page.getByText('What one change would do').waitFor();
  const navigation = page.getByRole('navigation', { name: 'Pages' });
  expect(await navigation.getByRole('link').allTextContents()).toEqual(['Analyze', 'Cards', 'Combinations', 'Plan', 'Timeline', 'Guide']);
  expect(await page.getByRole('button', { name: /^(Save|Emulate|Measure)$/ }).count()).toBe(0);
  expect(await page.getByText(/No GPU here|See it over time/).count()).toBe(0);
  await navigation.getByRole('link', { name: 'Guide' }).click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.reload(); // a page of its own
  expect(await page.locator('main').textContent()).toContain('memorymark');
  expect(left).toEqual([]);
  await page.goto(`${home}m/llama-3.2-1b/t4/`);
  await page.getByRole('link', { name: /^Change the batch/ }).click();
  await page.waitForURL(/batch=\d+&precision=amp-fp16.*&checkpointing=true&sequence=1024/);
  await page.getByRole('heading', { level: 1, name: /^(Yes|Tight)/ }).waitFor();
  await page.close();
});

test('pages of models and cards can be read without JavaScript', async () => {
  const page = await browser.newPage({ javaScriptEnabled: false });
  await page.goto(`${home}m/llama-3.2-1b/rtx-4090/`);
  const text = (await page.locator('main').textContent())!;
  for (const part of ['Largest batch', 'LoRA, rank 16 up to batch', 'At the peak', 'activations', 'Accuracy']) expect(text).toContain(part);
  expect(await page.getAttribute('meta[property="og:image"]', 'content')).toMatch(/\/m\/llama-3.2-1b\/rtx-4090\/preview.png$/);
  await page.getByRole('link', { name: 'Guide' }).click();
  expect(await page.locator('h1').textContent()).toBe('User guide');
  await page.getByRole('link', { name: 'Which batch' }).click();
  expect(await page.locator('main').textContent()).toContain('memorymark analyze');
  await page.goto(home);
  expect(await page.locator('noscript').textContent()).toContain('the answers for common models and cards');
  await page.close();
});

const validator = new HtmlValidate(
  new StaticConfigLoader({
    root: true,
    extends: ['html-validate:standard'],
    rules: { 'doctype-style': 'off', 'void-style': 'off', 'prefer-tbody': 'off', 'long-title': 'off', 'attr-quotes': 'off', 'wcag/h37': 'error' },
  }),
);

/** validity lists what is not valid HTML in a page: how it writes what is valid is its own affair. */
async function validity(html: string): Promise<string[]> {
  const { results } = await validator.validateString(html);
  return results.flatMap(({ messages }) => messages.map(({ line, ruleId, message }) => `line ${line}: ${message} (${ruleId})`));
}

const pageOf = (body: string) => `<!doctype html>\n<html lang="en"><head><title>A page</title></head><body>${body}</body></html>`;

test('what is not valid HTML is found', async () => {
  expect(await validity(pageOf('<p id="a">One &amp; two <br />three</p>'))).toEqual([]);
  for (const wrong of [
    '<p><div>a block in a paragraph</div></p>',
    '<ul><p>no item</p></ul>',
    '<table><p>no row</p></table>',
    '<a href="x"><a href="y">a link in a link</a></a>',
    '<b><i>crossed</b></i>',
    '<h1>closed as another</h2>',
    '<p id="a">one</p><p id="a">two</p>',
    '<p class="a" class="b">one attribute twice</p>',
    '<p>no such entity: &nosuch;</p>',
    '<img src="without-words.png">',
    '<unknown>element</unknown>',
    '<section>never closed',
  ]) {
    expect(await validity(pageOf(wrong)), wrong).not.toEqual([]);
  }
});

test('every page is valid HTML, and every link within the site leads somewhere', async () => {
  const pages = (readdirSync(folder, { recursive: true }) as string[]).filter((name) => name.endsWith('.html'));
  expect(pages.length).toBeGreaterThan(20);
  const sitemap = readFileSync(join(folder, 'sitemap.xml'), 'utf8');
  for (const name of pages) {
    const html = readFileSync(join(folder, name), 'utf8');
    expect(await validity(html), name).toEqual([]);
    expect(html, name).toMatch(/<title>[^<]+<\/title>/);
    expect(html, name).toContain('<meta name="description"');
    expect(sitemap, name).toContain(`/${name.replace(/index\.html$/, '')}</loc>`);
    for (const [, to] of html.matchAll(/(?:href|src)="(?!https?:|#)([^"?#]+)/g)) {
      let file = join(folder, name, '..', to!);
      if (to!.endsWith('/')) file = join(file, 'index.html');
      expect(existsSync(file), `${name} links to ${to}`).toBe(true);
    }
  }
});
