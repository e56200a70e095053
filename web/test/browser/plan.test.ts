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
  page = await (await browser.newContext({ viewport: { width: 1280, height: 900 }, permissions: ['clipboard-read', 'clipboard-write'] })).newPage();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

test('a plan has its best ways, its picture and what to paste', async () => {
  await page.goto(`${program.url}/plan?model=gpt2&run_tokens=1000000000&max_gpus=2`);
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  const cheapest = page.getByRole('region', { name: /^Cheapest/ }).first();
  await cheapest.waitFor();
  await cheapest.getByRole('button', { name: 'Copy command' }).click();
  await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toMatch(/^memorymark predict gpt2 --gpu/);
  await cheapest.getByText('Code to train it').click();
  await cheapest.getByText('optimizer.zero_grad()', { exact: false }).waitFor();
  await cheapest.getByRole('radio', { name: 'Launch' }).click();
  await cheapest.getByText(/(python|torchrun)\s[^]*train\.py/).first().waitFor();
  const picture = page.getByRole('img', { name: /ways that fit .* by dollars and days/ });
  await picture.focus();
  await page.keyboard.press('Home');
  await page.getByRole('status').getByText(/^\$[\d.]+, [\d.]+ (min|h|days)$/).waitFor();
  await cheapest.getByRole('link', { name: 'Open in Analyze' }).click();
  await expect.poll(() => page.getByRole('heading', { level: 1 }).textContent()).toMatch(/^(Yes|Tight): .* × NVIDIA/);
  await page.goBack();
  await cheapest.waitFor(); // it was kept
});

test('tokens are read as people write them, Enter plans, and a reload repeats the answer', async () => {
  await page.goto(`${program.url}/plan?model=gpt2&max_gpus=8`);
  await page.getByLabel('Tokens', { exact: true }).fill('1B');
  await page.getByText('1,000,000,000 tokens').waitFor();
  await page.getByLabel('Tokens', { exact: true }).fill('300M');
  await page.getByText('300,000,000 tokens').waitFor();
  await page.getByLabel('Tokens', { exact: true }).press('Enter');
  const balanced = page.getByRole('region', { name: /^Balanced/ });
  await balanced.getByText(/[\d.]+ GiB of [\d.]+ GiB/).waitFor(); // memory on each option
  const said = await balanced.getByText(/^\$/).textContent();
  expect(said).not.toBe('$0.00');
  await page.getByText(/^All \d+ ways, the cheapest first$/).click();
  const pins = page.getByRole('checkbox', { name: /^Pin / });
  await pins.nth(0).check();
  await pins.nth(1).check();
  const pinned = page.getByRole('region', { name: 'Pinned, side by side' });
  await expect.poll(() => pinned.getByRole('row', { name: /^GPUs/ }).getByRole('cell').count()).toBe(2);
  await page.getByText(/ cards were left out$/).waitFor();
  await page.reload();
  await expect.poll(() => balanced.getByText(/^\$/).textContent()).toBe(said);
  await pinned.waitFor();
  await page.getByLabel('Cards I have').selectOption('t4');
  await page.waitForURL(/gpus=t4/);
  await page.getByRole('button', { name: 'Plan it' }).click();
  await page.getByRole('region', { name: /Cheapest/ }).first().getByText(/× NVIDIA Tesla T4/).waitFor();
});

test('an amount in an address is read as people write it, and shown as it was read', async () => {
  await page.goto(`${program.url}/plan?model=gpt2&tokens=1B&max_gpus=2`);
  await page.getByText('1,000,000,000 tokens').waitFor();
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  await page.getByRole('region', { name: /^Cheapest/ }).first().waitFor();
  await page.goto(`${program.url}/?model=gpt2&tokens=300M`);
  await page.getByText('A run of 300,000,000 tokens').waitFor();
  await page.goto(`${program.url}/plan?model=gpt2&days=soon`);
  await page.getByText('a number from 0 on is expected').waitFor();
});

test('what does not fit is hollow and says why', async () => {
  await page.goto(`${program.url}/plan?model=llama-3.1-8b&max_gpus=1&full=true&days=1000`);
  await page.getByRole('button', { name: 'Plan it' }).click();
  await page.getByText(/^Why (one way does|[\d,]+ ways do) not fit$/).click();
  await page.getByText(/ needs (at least )?[\d.]+ GiB, and PyTorch may hold/).first().waitFor();
});

/** hold makes each event of a plan wait until the test lets it through: a fast plan would be made before one looks. */
async function hold(): Promise<() => void> {
  let go: (() => void) | undefined;
  await page.exposeFunction('letThrough', () => new Promise<void>((done) => (go = done)));
  await page.addInitScript(() => {
    const ask = globalThis.fetch;
    globalThis.fetch = async (...asked) => {
      const answer = await ask(...asked);
      if (!answer.url.endsWith('/v1/plans/events')) return answer;
      let text = '';
      const held = new TransformStream<string, string>({
        transform: async (part, out) => {
          const events = (text + part).split('\n\n');
          text = events.pop()!;
          for (const event of events) {
            await (globalThis as unknown as { letThrough(): Promise<void> }).letThrough();
            out.enqueue(`${event}\n\n`);
          }
        },
      });
      const whole = answer.body!.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).pipeThrough(held);
      return new Response(whole.pipeThrough(new TextEncoderStream()), answer);
    };
  });
  return () => go?.();
}

test('a plan says how much of it is made; it is cancelled, and the server stops', async () => {
  const next = await hold();
  await page.goto(`${program.url}/plan?model=llama-2-7b&sequence=1024`);
  const left = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/v1/plans/events'));
  await page.getByRole('button', { name: 'Plan', exact: true }).click();
  // The bar fills: what it says is a share of all, and grows.
  const bar = page.getByRole('progressbar', { name: 'How much of the plan is made' });
  const share = () => bar.evaluate((found: HTMLProgressElement) => found.position);
  const nextShare = () => {
    next();
    return share();
  };
  await expect.poll(nextShare).toBeGreaterThan(0);
  expect(await bar.evaluate((found) => getComputedStyle(found).appearance)).toBe('none'); // drawn in the page's colours
  const early = await share();
  await expect.poll(nextShare).toBeGreaterThan(early);
  await page.getByRole('region', { name: 'Progress' }).getByText(/^\d+ %$/).waitFor();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await left;
  await page.getByRole('button', { name: 'Plan it' }).waitFor();
});

test('a plan keeps to what was set, until it is left to it', async () => {
  await page.goto(`${program.url}/?model=gpt2&gpu=a10&precision=bf16&batch=4`);
  await page.getByRole('link', { name: 'Plan', exact: true }).click();
  await page.getByRole('button', { name: /leave Precision to the plan/ }).click();
  await page.getByText("The plan chooses precision").waitFor();
  await page.goBack();
  await page.getByRole('button', { name: /leave Precision to the plan/ }).waitFor();
});
