// Emulating for real: a worker with PyTorch, and no GPU, runs a model that is not
// modelled on a card that is not there.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type Program, serve, work } from './program';

const python = process.env.MEMORYMARK_TEST_PYTHON;
if (!python) console.warn('NOT TESTED: emulating on the page; MEMORYMARK_TEST_PYTHON names no Python with PyTorch and transformers');

const config = {
  model_type: 'fnet', architectures: ['FNetForMaskedLM'], hidden_size: 256, num_hidden_layers: 2, intermediate_size: 512, vocab_size: 3000,
};
const address = `/?${new URLSearchParams({ gpu: 't4', batch: '64', sequence: '16', limit_gib: '0.5', config: JSON.stringify(config) })}`;

let program: Program;
let worker: { stop(): Promise<void> };
let browser: Browser;
let page: Page;

beforeAll(async () => {
  if (!python) return;
  [program, browser] = await Promise.all([serve(), openBrowser()]);
  worker = await work(program, ['--python', python]);
  page = await browser.newPage();
});

afterAll(async () => {
  await browser?.close();
  await worker?.stop();
  await program?.stop();
});

test.skipIf(!python)('what is not modelled is emulated', async () => {
  await page.goto(program.url + address);
  await page.getByText('FNetForMaskedLM is not modelled', { exact: false }).first().waitFor();
  await page.getByText('A real PyTorch on an emulated card').waitFor();
  await page.getByRole('button', { name: 'Emulate' }).click();
  await page.getByRole('heading', { name: 'Emulating' }).waitFor();
  const log = page.getByRole('log');
  await log.getByText(/^batch \d+: /).first().waitFor(); // while it runs
  const early = (await log.textContent())!.length;
  await log.getByText(/^batch \d+: trains, /).first().waitFor();
  await log.getByText('done', { exact: true }).waitFor();
  expect((await log.textContent())!.length).toBeGreaterThan(early);
  await page.getByRole('heading', { level: 1, name: /^(Yes|Tight|No) ?: .* on 1 × NVIDIA/ }).waitFor();
  await page.getByText('emulated', { exact: true }).first().waitFor();
  await page.getByText('so that PyTorch ran it, emulated').waitFor();
  await page.goto(`${program.url}/workers`);
  await page.getByText(/any card, emulated with PyTorch 2/).first().waitFor();
});
