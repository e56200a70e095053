import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { Browser, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openBrowser, type Program, serve } from './program';

let program: Program;
let browser: Browser;
let page: Page;

beforeAll(async () => {
  [program, browser] = await Promise.all([serve(), openBrowser()]);
});

beforeEach(async () => {
  await page?.context().close();
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, permissions: ['clipboard-read', 'clipboard-write'] });
  page = await context.newPage();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

const headline = () => page.getByRole('heading', { level: 1 });

test('the first prediction is on the screen soon', async () => {
  await page.goto(program.url); // a first visit, so that the next one measures the page and not the disk
  await page.getByRole('button', { name: 'Apply checkpointing' }).waitFor();
  await page.getByText('All 20 batches that were tried').waitFor(); // the server has nothing left to compute
  const began = performance.now();
  await page.goto(`${program.url}/?model=distilbert&gpu=a10`);
  await page.getByRole('row', { name: 'Parameters' }).waitFor();
  const first = performance.now() - began;
  await headline().waitFor();
  console.log(`first prediction after ${first.toFixed(0)} ms, whole answer after ${(performance.now() - began).toFixed(0)} ms`);
});

test('the page is small', () => {
  const assets = join(import.meta.dirname, '../../dist/assets');
  const sizes = readdirSync(assets)
    .filter((name) => !/^(timeline|scene|GuidePage)/.test(name) && statSync(join(assets, name)).isFile())
    .map((name) => gzipSync(readFileSync(join(assets, name))).length);
  const total = sizes.reduce((a, b) => a + b, 0);
  console.log(`${(total / 1000).toFixed(1)} kB gzipped, all pages but the timeline and the guide, which is text`);
  expect(total).toBeLessThan(200_000);
});

test('the first load is small', async () => {
  const loaded: Request[] = [];
  page.on('requestfinished', (request) => !request.url().includes('/v1/') && loaded.push(request));
  await page.goto(`${program.url}/?model=distilbert&gpu=t4`);
  await headline().waitFor();
  const sizes = await Promise.all(loaded.map((request) => request.sizes()));
  const total = sizes.reduce((sum, { responseBodySize }) => sum + responseBodySize, 0);
  console.log(`first load ${(total / 1000).toFixed(1)} kB`);
  expect(total).toBeGreaterThan(0);
  expect(total).toBeLessThanOrEqual(250_000);
});

test('the answer follows the inputs and the address follows too', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  await expect.poll(() => headline().textContent()).toMatch(/^Batch \d+ trains on an NVIDIA A10; with batch 16 you use 11 % of it\.$/);
  const before = await headline().textContent();
  await page.getByLabel('Precision', { exact: true }).selectOption('bf16');
  await expect.poll(() => headline().textContent()).not.toBe(before);
  await page.waitForURL(`${program.url}/?model=bert&gpu=a10&precision=bf16`);
  await page.getByLabel('Batch today').fill('64');
  await expect.poll(() => headline().textContent()).toContain('with batch 64');
  await page.goBack();
  await expect.poll(() => headline().textContent()).toBe(before);
});

test('a link reproduces the whole workload', async () => {
  await page.goto(`${program.url}/?model=gpt2&gpu=rtx-4090&precision=amp-bf16&batch=4&checkpointing=true&optimizer_impl=fused&multiple_of=8`);
  await expect.poll(() => headline().textContent()).toContain('RTX 4090; with batch 4');
  await page.getByRole('button', { name: 'Optimizer and loop fused' }).click();
  await expect.poll(() => page.getByLabel('Optimizer runs').inputValue()).toBe('fused');
  await expect.poll(() => page.getByRole('switch', { name: 'Activation checkpointing' }).isChecked()).toBe(true);
  const batch = Number(/Batch ([\d,]+)/.exec((await headline().textContent()) ?? '')?.[1]?.replace(',', ''));
  expect(batch % 8).toBe(0);
});

test('one click applies a change', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  await page.getByRole('button', { name: 'Apply checkpointing' }).click();
  await expect.poll(() => page.getByRole('switch', { name: 'Activation checkpointing' }).isChecked()).toBe(true);
  await page.waitForURL(/checkpointing=true/);
});

test('today and the batch worth using are seen over time, and back again', async () => {
  await page.goto(`${program.url}/?model=distilbert&gpu=t4&precision=amp-fp16`);
  await headline().waitFor();
  const bars = page.getByRole('region', { name: 'How full the card is' });
  for (const name of ['today', 'worth using']) {
    const bar = bars.getByRole('listitem').filter({ hasText: name });
    const batch = /Batch ([\d,]+)/.exec((await bar.textContent()) ?? '')![1]!.replace(',', '');
    await bar.getByRole('link', { name: /over time/ }).click();
    await page.waitForURL(`${program.url}/timeline?model=distilbert&gpu=t4&precision=amp-fp16${batch === '16' ? '' : `&batch=${batch}`}`);
    await page.getByTestId('plot').waitFor();
    await page.goBack();
    await bar.waitFor();
  }
  await bars.getByRole('link', { name: /over time/ }).last().click();
  await page.getByRole('main').getByRole('link', { name: 'Analyze' }).click(); // the timeline's, which takes its batch along
  await expect.poll(() => headline().textContent()).toMatch(/^Batch (\d+) trains on an NVIDIA Tesla T4; with batch \1 you use/);
});

test('a measured answer leads to its recording', async () => {
  const example = readFileSync(join(import.meta.dirname, '../../../examples/gpt2_oom.pickle.xz'));
  const sent = await page.request.post(`${program.url}/v1/snapshots?name=run.pickle`, { data: example, headers: { 'Content-Type': 'application/octet-stream' } });
  const { id: snapshot } = (await sent.json()) as { id: string };
  const begun = await page.request.post(`${program.url}/v1/analyses`, { data: { workload: { model: 'distilbert', gpu: 't4' }, engine: 'predicted' } });
  const { id } = (await begun.json()) as { id: string };
  // Only a worker with a card records; the answer says where it put that.
  await page.route(`**/v1/analyses/${id}/events`, (route) => route.abort());
  await page.route(`**/v1/analyses/${id}`, async (route) => {
    const response = await route.fetch();
    const kept = (await response.json()) as { answer?: object };
    await route.fulfill({ response, json: { ...kept, answer: kept.answer && { ...kept.answer, engine: 'measured', snapshot_id: snapshot } } });
  });
  await expect.poll(async () => (await page.request.get(`${program.url}/v1/analyses/${id}`)).text()).toContain('succeeded');
  await page.goto(`${program.url}/history/${id}`);
  await page.getByRole('link', { name: /^See the recording of batch \d+ over time$/ }).click();
  await page.getByRole('heading', { name: 'run.pickle' }).waitFor();
  await page.waitForURL(`${program.url}/timeline?snapshot=${snapshot}`);
  await page.goBack();
  await page.getByRole('link', { name: 'Repeat with changes' }).waitFor();
  await page.unrouteAll({ behavior: 'ignoreErrors' }); // one may be on its way
});

test('hours and price change what is saved, and the server computes it', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  const asked = page.waitForRequest((r) => r.url().endsWith('/v1/predictions/analysis') && r.postDataJSON().hours_per_year === 1000);
  await page.getByLabel('GPU hours per year').fill('1000');
  await asked;
  await page.getByText('in 1,000 GPU-hours').waitFor();
  await page.getByLabel('Dollars per hour').fill('2');
  await page.getByText('Your own price.').waitFor();
});

test('a configuration can be pasted, and dropped', async () => {
  const config = { model_type: 'gpt2', architectures: ['GPT2LMHeadModel'], n_layer: 3 };
  await page.goto(`${program.url}/?gpu=a10`);
  await page.getByRole('button', { name: /^Model/ }).click();
  await page.getByRole('button', { name: 'Use a config.json' }).click();
  await page.getByRole('textbox', { name: 'config.json' }).fill('{"n_layer": 3}');
  await page.getByRole('button', { name: 'Use it' }).click();
  await page.getByText('It has no model_type').waitFor();
  await page.getByRole('textbox', { name: 'config.json' }).fill(JSON.stringify(config));
  await page.getByRole('button', { name: 'Use it' }).click();
  await page.getByRole('button', { name: 'Model config.json (gpt2)' }).waitFor();
  await page.getByText('transformer.h.2').waitFor();

  const file = join(mkdtempSync(join(tmpdir(), 'memorymark-page-')), 'config.json');
  writeFileSync(file, JSON.stringify({ ...config, n_layer: 5 }));
  const transfer = await page.evaluateHandle((text) => {
    const data = new DataTransfer();
    data.items.add(new File([text], 'config.json', { type: 'application/json' }));
    return data;
  }, readFileSync(file, 'utf8'));
  await page.getByRole('form', { name: 'Workload' }).dispatchEvent('drop', { dataTransfer: transfer });
  await page.getByText('transformer.h.4').waitFor();
});

test('what cannot be is said in a box that can be dismissed, and beside the field', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  await headline().waitFor();
  await page.getByLabel('Batch today').fill('0');
  const box = page.getByRole('alert');
  await expect.poll(() => box.textContent()).toContain('it must be at least 1');
  await expect.poll(() => page.getByLabel('Batch today').getAttribute('aria-invalid')).toBe('true');
  await box.getByRole('button', { name: 'Dismiss' }).click();
  await box.waitFor({ state: 'detached' });
  await page.getByLabel('Batch today').fill('8');
  await expect.poll(() => headline().textContent()).toContain('with batch 8');
});

test('a model that is too large is no mystery', async () => {
  await page.goto(`${program.url}/?model=llama-3.1-8b&gpu=a10`);
  await page.getByText('batch 1, the smallest, does not train on an NVIDIA A10').waitFor();
  await page.getByRole('row', { name: 'Optimizer state' }).waitFor();
});

test('what is copied is what is asked', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10&precision=amp-bf16`);
  await page.getByRole('radio', { name: 'Python' }).click();
  await page.getByRole('button', { name: 'Copy', exact: true }).click();
  await page.getByRole('button', { name: 'Copied' }).waitFor();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toContain('torch.autocast("cuda", torch.bfloat16)');
});

test('an analysis is watched live and kept', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  await page.getByRole('button', { name: 'Analyze' }).click();
  const log = page.getByRole('log', { name: 'Progress' });
  await log.getByText('predicting bert on an NVIDIA A10').waitFor();
  await log.getByText('done', { exact: true }).waitFor();
  await expect.poll(() => log.textContent()).toMatch(/batch \d+: trains/);
  await page.getByRole('link', { name: 'Open in the history' }).click();
  await page.waitForURL(/\/history\/./);
});

test('a measurement that nobody takes can be cancelled', async () => {
  // Nobody has the card here, so the page would not ask; the API can be asked all the same.
  const begun = await page.request.post(`${program.url}/v1/analyses`, { data: { workload: { model: 'bert', gpu: 'h100' }, engine: 'measured' } });
  const { id } = (await begun.json()) as { id: string };
  await page.goto(`${program.url}/history/${id}`);
  await page.getByRole('log').getByText('waiting for a worker').waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('log').getByText(/^cancelled/).waitFor();
});

test('a negative price is an error at its field, and the rest stays', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  const price = page.getByLabel('Dollars per hour');
  await price.fill('-2');
  await page.getByText('It must be at least 0.').waitFor();
  await expect.poll(() => price.getAttribute('aria-invalid')).toBe('true');
  await expect.poll(() => headline().textContent()).toMatch(/^Batch \d+ trains/);
  await price.fill('2');
  await page.getByText('Your own price.').waitFor();
  await expect.poll(() => price.getAttribute('aria-invalid')).toBeNull();
});

test('a price of 0 is 0', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10&price_per_hour=0`);
  await page.getByText('A million tokens').waitFor();
  const tiles = page.getByRole('region', { name: 'The answer' });
  await tiles.getByText('$0.00').waitFor();
});

test('a card without a price leaves no empty tile', async () => {
  await page.goto(program.url);
  const { gpus } = (await (await page.request.get(`${program.url}/v1/gpus`)).json()) as { gpus: { id: string; price?: object }[] };
  const free = gpus.find((gpu) => !gpu.price);
  await page.goto(`${program.url}/?model=bert&gpu=${free!.id}`);
  await page.getByText('No price of this card is known').waitFor();
  const list = page.getByRole('region', { name: 'The answer' }).locator('dl');
  const tiles = list.locator('> div');
  await expect.poll(() => tiles.count()).toBe(3);
  await expect
    .poll(async () => {
      const [last, outer] = [(await tiles.last().boundingBox())!, (await list.boundingBox())!];
      return last.x + last.width - (outer.x + outer.width);
    })
    .toBeCloseTo(0, -1); // the row is full
});

test('three equal bars say that the optimizer decides, and bars that differ do not', async () => {
  const card = page.getByRole('region', { name: 'How full the card is' });
  const sums = async () => (await card.getByText(/^[\d.]+ GiB of [\d.]+ GiB$/).allTextContents()).map((text) => Number.parseFloat(text));
  await page.goto(`${program.url}/?model=llama-3.2-1b&gpu=a100-80gb&batch=1&limit_gib=23.6`);
  await card.getByText('Up to batch 8, the optimizer step sets the peak and not the batch: these bars are about equal.').waitFor();
  await expect.poll(sums).toHaveLength(3);
  const equal = await sums();
  expect(Math.max(...equal) / Math.min(...equal)).toBeLessThan(1.001);
  await page.goto(`${program.url}/?model=bert&gpu=a10&batch=4`);
  await expect.poll(async () => new Set(await sums()).size).toBe(3);
  expect(await card.getByText('about equal', { exact: false }).count()).toBe(0);
});

test('why the next batch fails is said once', async () => {
  await page.goto(`${program.url}/?model=llama-3.2-1b&gpu=a10&precision=bf16&batch=1`);
  const notes = page.getByRole('list', { name: 'What it means' });
  await notes.getByText(/^batch \d+ fails: in the/).waitFor();
  expect(await notes.getByText(/^batch \d+ fails/).count()).toBe(1);
});

test('a change that gains nothing is not offered', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  await page.getByRole('button', { name: 'Apply checkpointing' }).waitFor();
  await page.getByRole('row', { name: /^fused optimizer/ }).waitFor();
  expect(await page.getByRole('button', { name: 'Apply fused optimizer' }).count()).toBe(0);
});

test('accuracy is said once, and its figures are reached by touch', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  await headline().waitFor();
  expect(await page.getByText(/95 % within|exact in/).filter({ visible: true }).count()).toBe(0);
  await page.getByText('How far off such answers were, in figures').click();
  await page.getByRole('row', { name: /^Largest batch \d/ }).waitFor();
});
