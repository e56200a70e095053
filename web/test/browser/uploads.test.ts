// Files that are dropped or chosen: what is accepted is told, what is not is refused in words, and the way there can be watched and left.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { drop, openBrowser, type Program, serve } from './program';

const example = readFileSync(join(import.meta.dirname, '../../../examples/gpt2_oom.pickle.xz'));

let program: Program;
let browser: Browser;
let page: Page;
let sent: string[]; // uploads that were begun

beforeAll(async () => {
  [program, browser] = await Promise.all([serve({ args: ['--max-upload', '1MiB'] }), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

beforeEach(async () => {
  page = await browser.newPage();
  sent = [];
  page.on('request', (request) => {
    if (request.method() === 'POST' && request.url().includes('/v1/snapshots')) sent.push(request.url());
  });
  return () => page.close();
});

const main = () => page.locator('main');
const alert = () => page.getByRole('alert');

test('the limit is told, and a larger file is refused before it is sent', async () => {
  await page.goto(`${program.url}/timeline`);
  await page.getByText('up to 1.00 MiB').waitFor();
  const large = Buffer.concat([Buffer.from([0x80, 4]), Buffer.alloc(2 << 20)]);
  await page.getByLabel('Snapshot file').setInputFiles({ name: 'large.pickle', mimeType: '', buffer: large });
  await alert().getByText('large.pickle has 2.00 MiB, and this server accepts 1.00 MiB.').waitFor();
  await alert().getByText('larger --max-upload').waitFor();
  expect(sent).toEqual([]);
});

test.each([
  ['notes.txt', Buffer.from('hello'), 'notes.txt is not a memory snapshot of PyTorch', 0],
  ['model.pt', Buffer.from('PK\u0003\u0004'), 'model.pt is an archive, such as torch.save writes for weights', 0],
  ['other.pickle', Buffer.from([0x80, 4, 0x7d, 0x2e]), 'the file holds a dict without segments', 1],
])('a wrong file gets an error about files, wherever it is dropped: %s', async (name, bytes, why, requests) => {
  await page.goto(`${program.url}/workers`);
  await page.getByRole('heading', { level: 1 }).waitFor(); // it listens for files
  await drop(page, main(), name, bytes);
  await alert().getByText('This file could not be opened').waitFor();
  await alert().getByText(why).waitFor();
  await alert().getByText('torch.cuda.memory._dump_snapshot').waitFor();
  expect(sent).toHaveLength(requests);
  await page.getByRole('button', { name: 'Dismiss' }).click();
  await expect.poll(() => alert().count()).toBe(0);
});

test.each(['/', '/cards', '/history'])('a snapshot that is dropped on %s opens in the timeline', async (path) => {
  await page.goto(program.url + path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await drop(page, main(), 'gpt2_oom.pickle.xz', example);
  await page.waitForURL(/\/timeline\?snapshot=[0-9a-f]{64}$/);
  await page.getByRole('heading', { name: 'gpt2_oom.pickle.xz' }).waitFor();
});

test('a config.json that is dropped on Analyze is still a model', async () => {
  await page.goto(program.url);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await drop(page, page.getByRole('heading', { level: 1 }), 'config.json', Buffer.from(JSON.stringify({ model_type: 'gpt2', architectures: ['GPT2LMHeadModel'], n_layer: 2 })));
  await page.waitForURL(/config\.model_type=gpt2/);
  expect(sent).toEqual([]);
});

test('an upload is watched, goes on while one looks at another page, and can be cancelled', async () => {
  await page.goto(`${program.url}/timeline`);
  const network = await page.context().newCDPSession(page);
  const slow = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: 2000 }; // eight minutes for it all
  await network.send('Network.enable');
  await network.send('Network.emulateNetworkConditions', slow);
  await page.getByText('up to 1.00 MiB').waitFor();
  await drop(page, main(), 'slow.pickle.xz', Buffer.concat([example, Buffer.alloc((1 << 20) - example.length)]));
  const upload = page.getByRole('region', { name: 'Upload' });
  await upload.getByText('Sending slow.pickle.xz').waitFor();
  await expect.poll(() => upload.getByRole('progressbar').evaluate((bar: HTMLProgressElement) => bar.position)).toBeGreaterThan(0);
  await page.getByRole('link', { name: 'Workers', exact: true }).click();
  await upload.getByText(/^[\d.]+ KiB of 1\.00 MiB$/).waitFor();
  await upload.getByRole('button', { name: 'Cancel' }).click();
  await upload.waitFor({ state: 'detached' });
  await network.send('Network.emulateNetworkConditions', { ...slow, uploadThroughput: -1 });
  const { snapshots } = (await (await fetch(`${program.url}/v1/snapshots`)).json()) as { snapshots: { name: string }[] };
  expect(snapshots.map(({ name }) => name)).not.toContain('slow.pickle.xz');
});
