import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type Program, serve } from './program';

let program: Program;
let browser: Browser;

beforeAll(async () => {
  [program, browser] = await Promise.all([serve(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

async function open(path: string, options: BrowserContextOptions = {}): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  await page.goto(program.url + path);
  return page;
}

// What each page shows when it has something to show, and what is done to bring it into a state of its own.
const paths: [path: string, sign: string | RegExp, act?: (page: Page) => Promise<unknown>][] = [
  ['/?model=distilbert&gpu=t4', 'What one change would do'],
  ['/?model=llama-3.1-8b&gpu=a10', 'It fits with'],
  ['/?model=gpt2&gpu=a10&batch=0', 'Invalid settings'],
  ['/?model=gpt2&gpu=rtx-4090&adapter=16&precision=bf16&checkpointing=true&batch=8&sequence=512', 'Full fine-tuning', openAll],
  ['/?model=gpt2&gpu=h100&parallel={"kind":"fsdp","gpus":8}&lengths={"100":5,"400":2}', 'Largest batch', openAll],
  ['/?model=bert&gpu=a10', 'Largest batch', (page) => page.getByRole('button', { name: /^Model/ }).click()],
  ['/?model=bert&gpu=a10&batch=4', 'Largest batch', openCode],
  ['/cards?model=distilbert', 'Each is simulated'],
  ['/settings?model=distilbert&gpu=t4', 'Each is simulated'],
  ['/plan?model=distilbert', 'be trained on'],
  ['/plan?model=distilbert&max_gpus=1&precision=bf16', 'be trained on', plan],
  ['/timeline', 'Drop a snapshot here'],
  ['/study?sizes=small&contexts=128,256', /exact in|95 % within|predicted$/],
  ['/history', 'Nothing yet'],
  ['/history?show=recordings', 'No recordings yet'],
  ['/history/compare', 'Choose two'],
  ['/history/nothing', 'cannot be shown'],
  ['/workers', 'ready'],
  ['/guide', 'Three ways to get an answer'],
  ['/guide/which-batch', 'Which batch'],
  ['/nowhere', 'Page not found'],
];

async function openAll(page: Page) {
  const folded = page.locator('form button[aria-expanded=false]:not([aria-haspopup])');
  while ((await folded.count()) > 0) await folded.first().click();
  for (const summary of await page.locator('summary').all()) await summary.click();
}

async function openCode(page: Page) {
  await page.getByRole('button', { name: /^Model/ }).click();
  await page.getByRole('button', { name: 'Use your own code' }).click();
  await page.getByRole('dialog').waitFor();
}

async function plan(page: Page) {
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await page.getByText('ways compared').waitFor();
  for (const summary of await page.locator('summary').all()) await summary.click();
}

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

test.each(paths)('%s is accessible in both themes and fits a phone', async (path, sign, act) => {
  const page = await open(path, { reducedMotion: 'reduce' }); // colours change at once
  await page.getByText(sign).filter({ visible: true }).first().waitFor();
  await act?.(page);
  await page.evaluate(axe);
  for (const theme of ['dark', 'light']) {
    await page.evaluate((value) => document.documentElement.setAttribute('data-theme', value), theme);
    const found = await page.evaluate(async () => {
      const { violations } = await (globalThis as unknown as { axe: { run(options: object): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }> } }).axe.run({ rules: { 'target-size': { enabled: true } } }); // 24 px
      return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html} ${node.failureSummary ?? ''}`));
    });
    expect(found, theme).toEqual([]);
  }
  for (const width of [320, 390, 768, 1024]) {
    await page.setViewportSize({ width, height: 844 });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: `${path}, ${width} wide` }).toBeLessThanOrEqual(width);
  }
  await page.context().close();
});

test('cards are sorted, filtered and opened', async () => {
  const page = await open('/cards?model=distilbert&sequence=64');
  await page.getByText('Each is simulated').waitFor();
  const names = () => page.locator('tbody th a').allTextContents();
  await page.getByRole('button', { name: 'Largest batch' }).click();
  await expect.poll(async () => (await names())[0]).toBe('B200');
  await page.getByRole('button', { name: 'Largest batch' }).click();
  await expect.poll(async () => (await names())[0]).toMatch(/3070|4060$/); // those with 8 GB
  await page.getByLabel('Filter').fill('rtx 40');
  await expect.poll(async () => (await names()).filter((name) => !name.startsWith('GeForce RTX 40'))).toEqual([]);
  expect(await names()).toContain('GeForce RTX 4070');
  await page.getByRole('link', { name: 'GeForce RTX 4090' }).click();
  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toContain('RTX 4090');
  await page.waitForURL(/sequence=64/);
  await page.context().close();
});

test('a combination of settings is taken to Analyze', async () => {
  const page = await open('/settings?model=distilbert&gpu=t4');
  const cell = page.getByRole('region', { name: 'fp16 autocast' }).getByRole('link', { name: /^SGD, checkpointing/ });
  await expect.poll(() => cell.textContent()).toMatch(/\d/);
  await cell.click();
  await page.waitForURL('**/?model=distilbert&gpu=t4&precision=amp-fp16&optimizer=sgd&checkpointing=true');
  await page.context().close();
});

test('combinations have LoRA and QLoRA among them, and say by how much each misses', async () => {
  const page = await open('/settings?model=llama-3.1-8b&gpu=rtx-4090');
  const rows = page.getByRole('region', { name: 'bf16, weights too' });
  await page.getByText('Each is simulated').waitFor();
  await expect.poll(() => rows.getByRole('link', { name: /^AdamW(?!,)/ }).textContent()).toMatch(/\d GiB over$/);
  await expect.poll(() => rows.getByRole('link', { name: /^LoRA(?!,)/ }).textContent()).toMatch(/^LoRA\d+$/);
  expect(await page.getByText('does not fit').count()).toBe(0);
  await rows.getByRole('link', { name: /^QLoRA, checkpointing/ }).click();
  await page.waitForURL(/quantize=nf4-double&precision=bf16/);
  await page.getByRole('heading', { level: 1, name: /QLoRA of Llama 3.1 8B/ }).waitFor();
  expect(await page.evaluate(() => scrollY)).toBe(0);
  await page.context().close();
});

test('the stated error is beside what is compared', async () => {
  const page = await open('/settings?model=bert&gpu=t4');
  await page.getByText('Each is simulated').waitFor();
  await page.getByText(/^Batches *predicted, (exact in|95 % within)/).waitFor();
  await page.getByText(/^Speed and cost *predicted, 95 % within/).waitFor();
  await page.context().close();
});

test('a study sweeps a grid and makes a report', async () => {
  const page = await open('/study?sizes=small&contexts=128,256&precisions=fp32&gpu=a10');
  const row = page.getByRole('row', { name: /^small/ });
  await expect.poll(() => row.getByRole('cell').allTextContents()).toEqual(Array(4).fill(expect.stringMatching(/GiB$/)));
  await page.getByRole('radio', { name: 'Step time' }).click();
  await expect.poll(() => row.getByRole('cell').allTextContents()).toEqual(Array(4).fill(expect.stringMatching(/ m?s$/)));
  await page.getByRole('button', { name: 'Make the page' }).click();
  const [report] = await Promise.all([page.context().waitForEvent('page'), page.getByRole('link', { name: /^Open memory-study-small.html/ }).click()]);
  await report.getByRole('heading', { level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Create the folder' }).click();
  const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: /^Save memory-study-small.zip/ }).click()]);
  expect(readFileSync(await saved.path()).subarray(0, 2).toString()).toBe('PK');
  await page.context().close();
});

test('a study with all chips on takes turns, and a busy server is asked again', async () => {
  const page = await open('/');
  let running = 0;
  let most = 0;
  const refused = new Set<string>();
  await page.route('**/v1/sweeps', async (route) => {
    const asked = route.request().postData()!;
    if (!refused.has(asked)) {
      refused.add(asked);
      return route.fulfill({ status: 503, headers: { 'Retry-After': '0' }, body: '{}' });
    }
    most = Math.max(most, ++running);
    await route.continue();
  });
  page.on('response', (response) => response.url().endsWith('/v1/sweeps') && response.status() === 200 && running--);
  await page.goto(`${program.url}/study?sizes=small,medium&contexts=128,256,512,1024&precisions=fp32,tf32,amp-bf16,amp-fp16,bf16&gpu=h200`);
  const cells = page.getByRole('cell', { name: /[GM]iB/ });
  await cells.first().waitFor(); // cells as they come
  await expect.poll(() => cells.count()).toBe(2 * 5 * 4 * 2);
  expect(refused.size).toBe(10);
  expect(most).toBeLessThanOrEqual(3);
  expect(await page.getByRole('alert').count()).toBe(0);
  await page.getByText('A longer context can take a little less').waitFor();
  await page.context().close();
});

test('the history is a table with answers: filtered, repeated, deleted with a way back', async () => {
  const page = await open('/history');
  await page.clock.install();
  for (const workload of [{ model: 'distilbert', gpu: 't4', precision: 'amp-fp16' }, { model: 'resnet-18', gpu: 't4' }]) {
    await page.request.post(`${program.url}/v1/analyses`, { data: { workload, engine: 'predicted' } });
  }
  const rows = page.locator('tbody').getByRole('row');
  await expect.poll(() => rows.count()).toBe(2);
  await page.getByLabel('Find').fill('resnet');
  await expect.poll(() => rows.count()).toBe(1);
  await rows.getByText('done').waitFor();
  await rows.getByText(/samples\/s$/).waitFor(); // its answer
  await page.clock.pauseAt(Date.now() + 60_000); // the way back is there for seconds
  await page.getByRole('button', { name: 'Delete ResNet-18' }).click();
  await page.getByText('No analysis matches').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await rows.getByText('ResNet-18').waitFor();
  await page.clock.resume();
  await page.getByRole('button', { name: 'Delete ResNet-18' }).click();
  await page.getByText('No analysis matches').waitFor();
  await page.getByRole('link', { name: 'Workers', exact: true }).click(); // leaving carries it out
  await expect.poll(async () => ((await (await page.request.get(`${program.url}/v1/analyses`)).json()) as { total: number }).total).toBe(1);
  await page.goBack();
  await page.getByRole('link', { name: 'Repeat DistilBERT base' }).click();
  await page.waitForURL('**/?model=distilbert&precision=amp-fp16&gpu=t4');
  await page.context().close();
});

test('two analyses are set side by side', async () => {
  const page = await open('/history');
  for (const batch of [8, 16]) {
    await page.request.post(`${program.url}/v1/analyses`, { data: { workload: { model: 'gpt2', gpu: 'h100', batch }, engine: 'predicted' } });
  }
  await page.getByLabel('Find').fill('h100');
  const boxes = page.getByRole('checkbox', { name: /^Compare GPT-2.* on H100/ });
  await expect.poll(() => boxes.and(page.locator(':enabled')).count()).toBe(2);
  await boxes.first().check();
  await boxes.last().check();
  await page.getByRole('link', { name: 'Compare the two' }).click();
  await page.getByRole('heading', { name: 'Side by side' }).waitFor();
  const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) });
  await expect.poll(() => row('Your batch').getAttribute('data-differs')).toBe('true');
  await expect.poll(() => row('Largest batch').getAttribute('data-differs')).toBe('false');
  await page.context().close();
});

test('recordings that are kept are dated, opened and deleted', async () => {
  const page = await open('/history?show=recordings');
  await page.getByText('No recordings yet').waitFor();
  await page.request.post(`${program.url}/v1/predictions/snapshot`, { data: { model: 'distilbert', gpu: 't4', batch: 4 } });
  await page.reload();
  const row = page.locator('tbody').getByRole('row').filter({ hasText: 'distilbert, batch 4' });
  await row.getByText('predicted').waitFor();
  await row.locator('time').waitFor();
  await row.getByRole('link').click();
  await page.getByTestId('plot').waitFor();
  await page.goBack();
  await row.getByRole('button', { name: /^Delete distilbert/ }).click();
  await page.getByText('No recordings yet').waitFor();
  await expect.poll(async () => (await page.request.get(`${program.url}/v1/snapshots`)).text()).toContain('"snapshots":[]');
  await page.context().close();
});

test('the workload travels over every page, and Back works', async () => {
  const page = await open('/?model=gpt2&gpu=t4&sequence=64');
  await page.getByRole('heading', { level: 1 }).waitFor();
  const go = (name: string) => page.getByRole('link', { name, exact: true }).click();
  for (const [name, path] of [['Cards', '/cards'], ['Combinations', '/settings'], ['Plan', '/plan']] as const) {
    await go(name);
    await page.waitForURL(({ pathname, searchParams }) => pathname === path && searchParams.get('model') === 'gpt2' && searchParams.get('sequence') === '64');
  }
  await go('History');
  await go('Workers');
  await go('Analyze');
  await page.waitForURL('**/?model=gpt2&gpu=t4&sequence=64');
  await page.goBack();
  await page.waitForURL('**/workers');
  await page.goBack();
  await page.goBack();
  await page.waitForURL('**/plan?model=gpt2&gpu=t4&sequence=64');
  await page.context().close();
});

test('what is running is opened from anywhere', async () => {
  const page = await open('/workers');
  // No worker has this card, so it waits.
  const begun = await page.request.post(`${program.url}/v1/analyses`, { data: { workload: { model: 'bert', gpu: 'h200' }, engine: 'measured' } });
  const { id } = (await begun.json()) as { id: string };
  await page.getByRole('link', { name: '1 waiting' }).click();
  await page.waitForURL(`**/history/${id}`);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('log').getByText(/^cancelled/).waitFor();
  await expect.poll(() => page.getByRole('link', { name: '1 waiting' }).count()).toBe(0);
  await page.context().close();
});

test('a worker is drained, after a question, and resumed', async () => {
  const page = await open('/workers');
  const card = page.getByRole('main').getByRole('listitem').filter({ has: page.getByRole('heading') });
  await card.getByText('ready').waitFor();
  await card.getByRole('button', { name: 'Drain', exact: true }).click();
  await card.getByRole('button', { name: 'Cancel' }).click();
  await card.getByRole('button', { name: 'Drain', exact: true }).click();
  await card.getByRole('button', { name: 'Drain it' }).click();
  await card.getByText('drained', { exact: true }).waitFor(); // the server's own stays
  const begun = await page.request.post(`${program.url}/v1/analyses`, { data: { workload: { model: 'bert', gpu: 'v100', batch: 3 }, engine: 'predicted' } });
  const { id } = (await begun.json()) as { id: string };
  await page.reload();
  await card.getByText('drained', { exact: true }).waitFor();
  await card.getByRole('button', { name: 'Resume' }).click();
  await card.getByText(/^(ready|busy)$/).first().waitFor(); // of the worker; a card of it may be busy too
  await expect.poll(async () => (await page.request.get(`${program.url}/v1/analyses/${id}`)).text()).toContain('succeeded');
  await page.context().close();
});

test('a worker that is gone cannot be drained', async () => {
  const page = await open('/workers');
  await page.route('**/v1/workers/*/drain', (route) => route.continue({ url: `${program.url}/v1/workers/nobody/drain` }));
  await page.getByRole('button', { name: 'Drain', exact: true }).click();
  await page.getByRole('button', { name: 'Drain it' }).click();
  await page.getByRole('alert').getByText('The worker could not be reached').waitFor();
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await page.getByRole('button', { name: 'Drain', exact: true }).waitFor();
  await page.context().close();
});

test('everything can be reached and done with the keyboard alone', async () => {
  const page = await open('/?model=bert&gpu=a10');
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Model BERT base' }).waitFor(); // the catalog is there
  await page.keyboard.press('Tab');
  await expect.poll(() => page.evaluate(() => document.activeElement?.textContent)).toBe('Skip to the content');
  await page.keyboard.press('Enter');
  await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('content');
  await page.keyboard.press('Tab');
  const focused = (role: 'combobox' | 'button', name: RegExp) =>
    expect.poll(() => page.getByRole(role, { name }).evaluate((element) => element === document.activeElement)).toBe(true);
  await focused('button', /^Model/);
  await page.keyboard.press('Enter');
  await focused('combobox', /Model/);
  await page.keyboard.type('gpt-2 xl');
  await page.getByRole('option', { name: /^GPT-2 XL/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/model=gpt2-xl/);
  await focused('button', /^Model/); // where one was
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await focused('combobox', /Card/);
  await page.keyboard.type('h200');
  await page.getByRole('option', { name: /H200/ }).first().waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('Enter');
  await page.waitForURL(/gpu=h200/);
  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toContain('H200');
  const chart = page.getByRole('img', { name: /Memory by batch/ });
  // Until the whole answer is there, the chart may be drawn again and lose the point.
  await expect
    .poll(async () => {
      await chart.focus();
      await page.keyboard.press('End');
      return page.getByText('no: out of memory').count();
    })
    .toBeGreaterThan(0);
  await page.context().close();
});

test('a lost server is noticed and recovered from', async () => {
  const server = await serve();
  const page = await browser.newPage();
  await page.goto(`${server.url}/?model=distilbert&gpu=t4`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await server.stop();
  await page.getByLabel('Your batch').fill('8');
  await page.getByRole('alert').getByText('The server does not answer.').waitFor();
  await page.getByRole('status').getByText('The server does not answer.').waitFor();
  const again = await serve({ listen: new URL(server.url).host });
  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toContain('at batch 8');
  await expect.poll(() => page.getByText('The server does not answer.').count()).toBe(0);
  await again.stop();
  await page.close();
});

test('who wants no motion gets none', async () => {
  const page = await open('/?model=bert&gpu=a10', { reducedMotion: 'reduce' });
  await page.getByRole('heading', { level: 1 }).waitFor();
  const longest = await page.evaluate(() =>
    Math.max(
      ...[...document.querySelectorAll('*')].flatMap((element) => {
        const style = getComputedStyle(element);
        return [style.animationDuration, style.transitionDuration].map((text) => Number.parseFloat(text) * (text.endsWith('ms') ? 1 : 1000));
      }),
    ),
  );
  expect(longest).toBeLessThan(1);
  await page.context().close();
});

test('the page is as light or dark as the system, until one chooses', async () => {
  const page = await open('/workers', { colorScheme: 'light' });
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  await page.getByRole('heading', { name: 'Workers' }).waitFor();
  await expect.poll(theme).toBe('light');
  await page.emulateMedia({ colorScheme: 'dark' });
  await expect.poll(theme).toBe('dark');
  await page.getByRole('button', { name: 'Use the light theme' }).click();
  await page.reload();
  await expect.poll(theme).toBe('light');
  await page.context().close();
});

test('on a phone the answer comes before the form', async () => {
  const page = await open('/?model=bert&gpu=a10', { viewport: { width: 390, height: 844 } });
  const answer = page.getByRole('heading', { level: 1 });
  await answer.waitFor();
  await page.getByLabel('Precision', { exact: true }).waitFor({ state: 'hidden' });
  await expect.poll(async () => (await answer.boundingBox())!.y).toBeLessThan(422); // the upper half
  await page.getByRole('button', { name: /^batch 16/ }).click();
  await page.getByLabel('Precision', { exact: true }).selectOption('bf16');
  await page.getByRole('button', { name: /^batch 16.*bf16, weights too/ }).click();
  await page.getByLabel('Precision', { exact: true }).waitFor({ state: 'hidden' });
  await page.context().close();
});

test('cards that are too small are one line', async () => {
  const page = await open('/cards?model=llama-3.1-8b');
  await page.getByText('Each is simulated').waitFor();
  await page.getByText(/^\d+ cards are too small$/).click();
  await page.getByText('batch 1, the smallest, does not train', { exact: false }).first().waitFor();
  expect(await page.locator('tbody').getByText('the smallest, does not train').count()).toBe(0);
  await page.context().close();
});

test('each page leads to what the guide says about it', async () => {
  const page = await open('/plan');
  await page.getByRole('link', { name: 'Guide' }).click();
  await page.waitForURL('**/guide/what-to-train-on');
  await page.getByRole('heading', { level: 1, name: 'What to train on' }).waitFor();
  await page.getByRole('main').getByRole('link', { name: 'Guide', exact: true }).click();
  await page.getByRole('link', { name: 'My run died' }).click();
  await page.getByRole('heading', { level: 1, name: 'My run died' }).waitFor();
  await page.context().close();
});
