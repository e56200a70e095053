// What people train now: adapters, 4-bit weights, several GPUs, samples of
// different lengths, what a run costs, and ways to make it fit.
import type { Browser, Page } from 'playwright-core';
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
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

const headline = () => page.getByRole('heading', { level: 1 });
const search = () => new URL(page.url()).searchParams;

test('a method sets what it is called, and one replaces another', async () => {
  await page.goto(`${program.url}/?model=gpt2&gpu=a10`);
  const method = (name: string) => page.getByRole('button', { name, exact: true });
  await expect.poll(() => method('Full').getAttribute('aria-pressed')).toBe('true');
  await method('QLoRA').click();
  await expect.poll(() => method('QLoRA').getAttribute('aria-pressed')).toBe('true');
  await expect.poll(() => Object.fromEntries(search())).toEqual({
    model: 'gpt2', gpu: 'a10', precision: 'bf16', lora: '16', 'lora.targets': 'all-linear', quantize: 'nf4-double', optimizer: 'paged-adamw-8bit', checkpointing: 'true',
  });
  await page.getByRole('button', { name: 'Adapters and 4-bit LoRA rank 16, 4-bit, quantized twice' }).click();
  await expect.poll(() => page.getByLabel('LoRA rank').inputValue()).toBe('16');
  await page.getByText('trains up to batch', { exact: false }).waitFor(); // full fine-tuning, next to it
  await method('Full').click();
  await expect.poll(() => search().get('lora')).toBeNull();
  await expect.poll(() => search().get('quantize')).toBeNull();
  await page.goBack();
  await expect.poll(() => method('QLoRA').getAttribute('aria-pressed')).toBe('true');
});

test('adapters are offered for every model, and the server takes them', async () => {
  await page.goto(`${program.url}/?model=resnet&gpu=a10`);
  await page.getByRole('button', { name: 'LoRA', exact: true }).click();
  await expect.poll(() => headline().textContent()).toMatch(/^Yes: LoRA of /);
  const sets = { precision: 'bf16', adapter: { kind: 'lora', rank: 16, targets: 'all-linear' }, batch: 1, gpu: 'h200' };
  const { models } = (await (await page.request.get(`${program.url}/v1/models`)).json()) as { models: { id: string; config: { model_type: string } }[] };
  const one = new Map(models.filter(({ id }) => !/70b|8x|a22b|32b/.test(id)).map(({ id, config }) => [config.model_type, id]));
  for (const [type, model] of one) {
    const checkpointing = !/resnet|convnext/.test(type) || undefined;
    const response = await page.request.post(`${program.url}/v1/predictions`, { data: { model, checkpointing, ...sets } });
    expect(response.status(), `${type}: ${await response.text()}`).toBe(200);
  }
});

test('a card without bf16 is offered fp16', async () => {
  await page.goto(`${program.url}/?model=gpt2&gpu=t4`);
  await headline().waitFor();
  await expect.poll(() => page.getByLabel('Precision', { exact: true }).getByRole('option').allTextContents()).toEqual(['fp32', 'fp16 autocast']);
  await page.getByRole('button', { name: 'Apply fp16 autocast' }).waitFor();
  await page.getByRole('button', { name: 'LoRA', exact: true }).click();
  await expect.poll(() => search().get('precision')).toBe('amp-fp16');
});

test('what a run takes and costs is said by the server', async () => {
  await page.goto(`${program.url}/?model=gpt2&gpu=a10`);
  const panel = page.getByRole('region', { name: 'Speed and cost' });
  await panel.getByText(/^[\d,]+ tokens\/s$/).waitFor();
  await panel.getByLabel('Tokens to train on').fill('1e9');
  await panel.getByText('A run of 1,000,000,000 tokens').waitFor();
  await panel.getByText(/ h, \$[\d.]+$/).waitFor();
  await expect.poll(() => search().get('run_tokens')).toBe('1000000000');
  await panel.getByLabel('Dollars per hour').fill('0');
  await panel.getByText(/ h, \$0\.00$/).waitFor();
  await expect.poll(() => panel.getByLabel('Dollars per hour').inputValue()).toBe('0');
});

test('the layers of a pipeline are given by hand, and each GPU has its own peak', async () => {
  await page.goto(`${program.url}/?model=llama-3.2-1b&gpu=a100-80gb&precision=bf16&batch=8&sequence=256`);
  await page.getByRole('button', { name: /^Several GPUs/ }).click();
  await page.getByLabel('Parallelism').selectOption('pipeline');
  await page.getByLabel('GPUs', { exact: true }).fill('3');
  await expect.poll(() => page.getByLabel('Layers of each GPU').inputValue()).toBe('6/5/5');
  await page.getByLabel('Microbatches').fill('4');
  const table = page.getByRole('region', { name: 'What each GPU takes' });
  await expect.poll(() => headline().textContent()).toMatch(/at batch 8 fits on 3 × NVIDIA A100/);
  await page.getByLabel('Layers of each GPU').fill('8/4/4');
  await table.getByRole('row', { name: /^0 8 [\d.]+ GiB [\d.]+ GiB$/ }).waitFor();
  expect(Object.fromEntries(search())).toMatchObject({ parallel: 'pipeline', 'parallel.gpus': '3', 'parallel.stages': '8,4,4', 'parallel.microbatches': '4' });
  await page.getByLabel('Layers of each GPU').fill('8/8/4');
  await page.getByText('stages have 20 layers in all; the model has 16').first().waitFor();
  await page.getByLabel('Parallelism').selectOption('');
  await page.getByText('Largest batch', { exact: true }).first().waitFor();
});

test('samples of different lengths are pasted', async () => {
  await page.goto(`${program.url}/?model=gpt2&gpu=a10`);
  await page.getByRole('button', { name: 'Lengths of samples' }).click();
  await page.getByLabel('Tokens of each sample').fill('100\nmany');
  await page.getByRole('button', { name: 'Use these' }).click();
  await page.getByText('“many” is not a number of tokens.').waitFor();
  await page.getByLabel('Tokens of each sample').fill('100\n400\n400\n');
  await page.getByRole('button', { name: 'Use these' }).click();
  await page.getByText('3 samples of 100 to 400 tokens', { exact: true }).waitFor();
  await page.getByText('padded to the longest of their batch', { exact: false }).waitFor();
});

test('what does not fit is made to fit, by changes together', async () => {
  await page.goto(`${program.url}/?model=llama-3.1-8b&gpu=a10&batch=4`);
  const ways = page.getByRole('region', { name: 'Changes that make it fit' });
  await expect.poll(() => ways.getByRole('listitem').count()).toBeGreaterThan(0);
  await ways.getByRole('button', { name: /^Apply .*QLoRA/ }).first().click();
  await expect.poll(() => headline().textContent()).toMatch(/^(Yes|Tight): /);
  await expect.poll(() => search().get('quantize')).toBe('nf4-double');
  expect(search().get('config')).toBeNull(); // the catalog has it
  await page.goBack();
  await ways.waitFor();
});

test('a model is asked for by its name on the hub', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  await page.getByRole('button', { name: /^Model/ }).click();
  await page.getByRole('combobox', { name: 'Search: Model' }).fill('openai-community/gpt2');
  await page.keyboard.press('Enter');
  await expect.poll(() => search().get('model')).toBe('gpt2');
  await page.getByRole('button', { name: /^Model/ }).click();
  await page.getByRole('combobox', { name: 'Search: Model' }).fill('someone/else-7b');
  await page.getByText('Nothing is called “someone/else-7b”.').waitFor(); // the server would refuse it
  await page.getByRole('button', { name: 'Use a config.json' }).waitFor();
});

test('a program of one\'s own is dropped, and who would run it is said', async () => {
  await page.goto(`${program.url}/?model=bert&gpu=a10`);
  const transfer = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(['def make():\n    ...\n'], 'train.py', { type: 'text/x-python' }));
    return data;
  });
  await page.getByRole('form', { name: 'Workload' }).dispatchEvent('drop', { dataTransfer: transfer });
  const dialog = page.getByRole('dialog', { name: 'Your own code' });
  await expect.poll(() => dialog.getByLabel('train.py').inputValue()).toContain('def make');
  await dialog.getByText('memorymark worker --allow-code --join').waitFor();
  await expect.poll(() => dialog.getByRole('button', { name: 'Emulate it' }).isDisabled()).toBe(true);
});
