// The user's own code, from the drop to the answer: a worker with PyTorch, and no GPU, runs it in a sandbox.
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { drop, openBrowser, type Program, serve, work } from './program';

const python = process.env.MEMORYMARK_TEST_PYTHON;
if (!python) console.warn("NOT TESTED: code of one's own on the page; MEMORYMARK_TEST_PYTHON names no Python with PyTorch");

const train = `import torch
from helper import width


def make():
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU(), torch.nn.Linear(width, 10))
    return model, lambda n: torch.randn(n, 256, width)
`;

let program: Program;
let worker: { stop(): Promise<void> } | undefined;
let browser: Browser;
let page: Page;
let noSandbox = '';

beforeAll(async () => {
  if (!python) return;
  [program, browser] = await Promise.all([serve(), openBrowser()]);
  page = await browser.newPage();
  try {
    worker = await work(program, ['--python', python, '--allow-code', '--code-memory', '4GiB']);
  } catch (error) {
    noSandbox = String(error);
    if (!noSandbox.includes('no sandbox')) throw error;
    console.warn(`NOT TESTED: ${noSandbox}`);
  }
});

afterAll(async () => {
  await browser?.close();
  await worker?.stop();
  await program?.stop();
});

test.skipIf(!python)("a program of one's own is dropped, emulated and answered", async ({ skip }) => {
  if (noSandbox) skip(noSandbox);
  await page.goto(`${program.url}/?model=bert&gpu=t4&batch=64&limit_gib=0.5`);
  await drop(page, page.getByRole('form', { name: 'Workload' }), 'train.py', Buffer.from(train));
  const dialog = page.getByRole('dialog', { name: 'Your own code' });
  await expect.poll(() => dialog.getByLabel('train.py').inputValue()).toBe(train);
  await dialog.locator('input[type=file]').setInputFiles({ name: 'helper.py', mimeType: 'text/x-python', buffer: Buffer.from('width = 2048\n') });
  await dialog.getByText('With helper.py.').waitFor();
  const emulate = dialog.getByRole('button', { name: 'Emulate it' });
  await expect.poll(() => emulate.isEnabled()).toBe(true); // a worker has joined
  await emulate.click();
  const log = page.getByRole('log');
  await log.getByText(/^batch [\d,]+: trains, /).first().waitFor();
  await page.getByRole('heading', { level: 1, name: /^No ?: .* of train\.py:make at batch 64 does not fit on 1 × NVIDIA Tesla T4\.$/ }).waitFor();
  await page.getByText('emulated: it runs out of memory within the 512.00 MiB that PyTorch may use.').waitFor();
  await page.getByText(/^[\d.]+ MiB at its peak$/).waitFor(); // of the largest batch, which trains
  await page.getByText('emulated', { exact: true }).first().waitFor();
  await expect.poll(() => page.getByLabel('To copy').textContent()).toBe('memorymark analyze train.py:make --gpu t4 --limit-gib 0.5 --batch 64');
  expect(await page.locator('a[href*="config=null"]').count()).toBe(0);
  await page.getByRole('button', { name: 'Repeat with changes' }).click();
  await page.getByRole('dialog', { name: 'Your own code' }).getByRole('button', { name: 'Cancel' }).click();
  const { results } = (await page.evaluate(async (path) => (await (await fetch(path)).json()).answer, `/v1/analyses/${page.url().split('/').at(-1)}`)) as { results: object[] };
  expect(results.filter((result) => 'memory_bytes' in result && !(result as { memory_bytes: number }).memory_bytes)).toEqual([]);
  await page.goto(`${program.url}/history`);
  await page.getByRole('row', { name: /train\.py:make/ }).getByText('emulated').waitFor();
});

test.skipIf(!python)('what is wrong with the code is said where it is', async ({ skip }) => {
  if (noSandbox) skip(noSandbox);
  await page.goto(`${program.url}/?model=bert&gpu=t4&batch=64&limit_gib=0.5`);
  await drop(page, page.getByRole('form', { name: 'Workload' }), 'train.py', Buffer.from('def make():\n    raise ValueError("no data here")\n'));
  await page.getByRole('dialog').getByRole('button', { name: 'Emulate it' }).click();
  await page.getByText('ValueError: no data here', { exact: false }).first().waitFor();
  await page.getByText(/train\.py/).first().waitFor();
});
