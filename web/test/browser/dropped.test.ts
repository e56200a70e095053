// A recorded snapshot on the site of plain files: read in the browser, drawn and explained as by the server.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Host, openHost } from './host';
import { drop, nearly, openBrowser, type Program, serve } from './program';

const recorded = (name: string) => readFileSync(join(import.meta.dirname, '../../../testdata/truth/snapshots', name));

let program: Program;
let browser: Browser;
let host: Host;
let page: Page;
let asked: string[]; // of the host
let failed: string[];

beforeAll(async () => {
  [program, browser, host] = await Promise.all([serve(), openBrowser(), openHost()]);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
  page = await context.newPage();
  asked = [];
  failed = [];
  page.on('request', (request) => asked.push(`${request.method()} ${request.url()}`));
  page.on('response', (response) => response.status() >= 400 && failed.push(response.url()));
  page.on('pageerror', (error) => failed.push(error.message));
});

afterAll(async () => {
  await browser?.close();
  host?.close();
  await program?.stop();
});

test('a dropped snapshot is read in the browser, drawn and explained', async () => {
  await page.goto(home());
  await page.getByRole('heading', { level: 1 }).waitFor();
  expect(asked.filter((request) => request.includes('snapshots.wasm'))).toEqual([]); // before it is needed
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Timeline' }).click();
  await page.getByText('It is read in this page and sent nowhere.').waitFor();
  await drop(page, page.getByText('Drop a snapshot here'), 'gpt2_oom.pickle.xz', recorded('gpt2_oom.pickle.xz'));
  await page.waitForURL(/snapshot=[0-9a-f]{64}/);
  await page.getByRole('heading', { name: 'gpt2_oom.pickle.xz' }).waitFor();
  await page.getByRole('heading', { name: 'Out of memory at event 26,238' }).waitFor();
  await page.getByText('needs 7.50 GiB, gets past this request').waitFor();
  await page.getByText(/of 8,\d{3}$/).waitFor(); // how many allocations are drawn
  await expect.poll(colors).toBeGreaterThan(5);
  await drop(page, page.locator('main'), 'llama.pickle.xz', recorded('llama_b2_s256_bf16_adamw_train.pickle.xz'));
  await page.getByRole('heading', { name: 'llama.pickle.xz' }).waitFor();
  await page.getByRole('button', { name: 'Compare' }).click();
  await page.getByRole('button', { name: /^gpt2_oom/ }).click();
  await page.getByRole('region', { name: 'Comparison' }).getByText(/makes the same first/).waitFor();
  expect(failed).toEqual([]);
  expect(asked.filter((request) => !request.startsWith(`GET ${host.home}`) && !request.startsWith('GET blob:'))).toEqual([]);
  expect(asked.filter((request) => request.includes('/v1/'))).toEqual([]);
});

test('what is no snapshot, and one of another visit, are refused in words', async () => {
  await page.goto(`${host.home}timeline/`);
  await drop(page, page.getByText('Drop a snapshot here'), 'x.pickle', Buffer.from([0x80, 4, 78, 46]));
  await page.getByText(/file x.pickle is not a readable snapshot/).waitFor();
  await page.goto(`${host.home}timeline/?snapshot=${'0'.repeat(64)}`);
  await page.getByText(/Drop it here again/).waitFor();
});

test('the figures are those of the server', async () => {
  const data = recorded('gpt2_oom.pickle.xz');
  await page.goto(host.home);
  const sent = await fetch(`${program.url}/v1/snapshots?name=gpt2_oom.pickle.xz`, { method: 'POST', body: new Uint8Array(data) });
  const { id } = (await sent.json()) as { id: string };
  const questions = ['', '/timeline?columns=1600&detail=8000', '/top?at=oom&n=12', '/flame?at=peak', '/segments?at=end', '/stretch?from=0&to=9000', '/events?limit=100', '/replay'];
  const targets = questions.map((question) => `/v1/snapshots/${id}${question}`);
  const answers = await inWorker(data, targets);
  for (const [i, target] of targets.entries()) {
    const theirs = (await (await fetch(program.url + target)).json()) as object;
    expect(plain(answers[i]!), target).toEqual(nearly(plain(theirs)));
  }
});

const home = () => `${host.home}?model=gpt2&gpu=a10&batch=8`;

/** colors counts the colours in the middle of the plot. */
function colors(): Promise<number> {
  return page.getByTestId('plot').evaluate((plot: HTMLCanvasElement) => {
    const { data } = plot.getContext('2d')!.getImageData(plot.width / 4, plot.height / 4, plot.width / 2, plot.height / 2);
    return new Set(new Uint32Array(data.buffer)).size;
  });
}

/** inWorker asks the program that reads snapshots about a file. */
function inWorker(data: Buffer, targets: string[]): Promise<object[]> {
  return page.evaluate(
    async ([text, ...questions]) => {
      const worker = new Worker('engine/engine.js', { name: 'snapshots' });
      const send = (method: string, target: string, body: ArrayBuffer | File) =>
        new Promise<object>((done) => {
          worker.addEventListener('message', (event: MessageEvent<{ body: ArrayBuffer }>) => done(JSON.parse(new TextDecoder().decode(event.data.body))), { once: true });
          // A worker has no origin to name.
          // oxlint-disable-next-line unicorn/require-post-message-target-origin
          worker.postMessage({ id: 1, method, target, body });
        });
      const file = new File([Uint8Array.from(atob(text!), (c) => c.charCodeAt(0))], 'x');
      await send('POST', '/v1/snapshots?name=gpt2_oom.pickle.xz', file);
      const answers = [];
      for (const question of questions) answers.push(await send('GET', question, new ArrayBuffer()));
      worker.terminate();
      return answers;
    },
    [data.toString('base64'), ...targets],
  );
}

/** plain is an answer without what differs by where a file is kept. */
function plain(answer: object): object {
  return Object.fromEntries(Object.entries(answer).filter(([key]) => !['$schema', 'created', 'stored_bytes'].includes(key)));
}
