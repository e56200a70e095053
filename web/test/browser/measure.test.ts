// Measuring for real: a worker with PyTorch takes the job, on the CPU in place of
// the card, and the page shows what it does.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, test } from 'vitest';
import { openBrowser, type Program, serve, work } from './program';

const python = process.env.MEMORYMARK_TEST_PYTHON;
if (!python) console.warn('NOT TESTED: measuring on the page; MEMORYMARK_TEST_PYTHON names no Python with PyTorch and transformers');

const gpt2 = { model_type: 'gpt2', architectures: ['GPT2LMHeadModel'], n_head: 2, n_positions: 64 };
// As small as a language model can be.
const small = { limit_gib: '0.05', config: JSON.stringify({ ...gpt2, n_layer: 1, n_embd: 64, vocab_size: 256 }) };
// It takes a CPU so long that no one looks too late.
const large = { sequence: '64', limit_gib: '4', config: JSON.stringify({ ...gpt2, n_layer: 12, n_embd: 768, vocab_size: 8192 }) };

let program: Program;
let worker: { stop(): Promise<void> };
let browser: Browser;
let page: Page;

beforeAll(async () => {
  if (!python) return;
  [program, browser] = await Promise.all([serve(), openBrowser()]);
  worker = await work(program, ['--card', 't4', '--device', 'cpu', '--python', python]);
});

beforeEach(async () => {
  page = await browser?.newPage();
  return () => page?.close();
});

afterAll(async () => {
  await browser?.close();
  await worker?.stop();
  await program?.stop();
});

const log = () => page.getByRole('log');
const begun = () => log().getByText(/^CPU, PyTorch 2/).waitFor();

async function measure(what: typeof small) {
  await page.goto(`${program.url}/?${new URLSearchParams({ gpu: 't4', batch: '2', sequence: '16', ...what })}`);
  await page.getByText('Real steps on the 1 worker with this card.').waitFor();
  await page.getByRole('button', { name: 'Measure' }).click();
  await begun();
}

test.skipIf(!python)('a measurement is still watched by a page that was loaded anew or left, and is cancelled', async () => {
  await measure(large);
  await page.reload();
  await begun(); // from its beginning
  await page.getByRole('link', { name: 'Workers' }).click();
  await page.getByRole('heading', { name: 'Workers', level: 1 }).waitFor();
  await page.goBack();
  await begun();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await log().getByText(/^cancelled/).waitFor();
});

test.skipIf(!python)('a measurement is watched to its end', async () => {
  await measure(small);
  await log().getByText(/^batch \d+: trains, /).first().waitFor();
  await log().getByText('done', { exact: true }).waitFor();
  await page.getByRole('heading', { level: 1, name: /^(Yes|Tight) ?: .* at batch 2 fits on this CPU/ }).waitFor();
  await page.getByText('measured', { exact: true }).first().waitFor();
});
