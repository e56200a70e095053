// Measuring for real: a worker with PyTorch takes the job, on the CPU in place of
// the card, and the page shows what it does.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBrowser, type Program, serve, work } from './program';

const python = process.env.MEMORYMARK_TEST_PYTHON;
if (!python) console.warn('NOT TESTED: measuring on the page; MEMORYMARK_TEST_PYTHON names no Python with PyTorch and transformers');

const patience = 300_000; // importing PyTorch alone takes 20 s on a busy machine

// As small as a language model can be.
const config = { model_type: 'gpt2', architectures: ['GPT2LMHeadModel'], n_layer: 1, n_embd: 64, n_head: 2, vocab_size: 256, n_positions: 64 };
const address = `/?${new URLSearchParams({ gpu: 't4', batch: '2', sequence: '16', limit_gib: '0.05', config: JSON.stringify(config) })}`;

let program: Program;
let worker: { stop(): Promise<void> };
let browser: Browser;
let page: Page;

beforeAll(async () => {
  if (!python) return;
  [program, browser] = await Promise.all([serve(), openBrowser()]);
  worker = await work(program, ['--card', 't4', '--device', 'cpu', '--python', python]);
  page = await browser.newPage();
}, patience);

afterAll(async () => {
  await browser?.close();
  await worker?.stop();
  await program?.stop();
});

async function measure() {
  await page.goto(program.url + address);
  await page.getByText('Real steps on the 1 worker with this card.').waitFor();
  await page.getByRole('button', { name: 'Measure' }).click();
  await page.getByRole('log').getByText(/^CPU, PyTorch 2/).waitFor({ timeout: patience });
}

test.skipIf(!python)('a measurement is cancelled', { timeout: patience }, async () => {
  await measure();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('log').getByText(/^cancelled/).waitFor();
});

test.skipIf(!python)('a measurement is watched to its end, also by a page that is loaded anew or left meanwhile', { timeout: patience }, async () => {
  await measure();
  await page.reload();
  await page.getByRole('log').getByText(/^CPU, PyTorch 2/).waitFor(); // from its beginning
  await page.getByRole('link', { name: 'Workers' }).click();
  await page.getByRole('heading', { name: 'Workers', level: 1 }).waitFor();
  await page.goBack();
  const log = page.getByRole('log');
  await log.getByText(/^batch \d+: trains, /).first().waitFor({ timeout: patience });
  await log.getByText('done', { exact: true }).waitFor({ timeout: patience });
  expect(await page.getByRole('heading', { level: 1 }).textContent()).toMatch(/^Batch \d+ trains on this CPU; with batch 2 you use/);
  await page.getByText('measured', { exact: true }).first().waitFor();
});
