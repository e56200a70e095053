// How smoothly the timeline moves at 100,000 and at a million allocations, without a graphics card. It prints and
// judges nothing: frames depend on what else the machine does, so those of a page that stands still are beside them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { afterAll, beforeAll, test } from 'vitest';
import { openBrowser, type Program, serve } from '../browser/program';
import { recording } from './recording';

const folder = mkdtempSync(join(tmpdir(), 'memorymark-bench-'));
let program: Program;
let browser: Browser;

beforeAll(async () => {
  [program, browser] = await Promise.all([serve(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const frames = 180;

test.each([100_000, 1_000_000])('%d allocations', async (allocations) => {
  const file = join(folder, `${allocations}.pickle`);
  writeFileSync(file, recording(allocations));
  const page = await browser.newPage({ viewport: { width: 1440, height: 1000 } });
  await page.goto(`${program.url}/timeline`);
  const start = Date.now();
  await page.getByLabel('Snapshot file').setInputFiles(file);
  const drawn = page.getByText(/^[1-9][\d,]* of [\d,]+$/);
  await drawn.waitFor({ timeout: 240_000 });
  console.log(`${allocations.toLocaleString('en-US')} allocations: first picture after ${Date.now() - start} ms`);
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  for (const most of [false, true]) {
    if (most) {
      const before = await drawn.textContent();
      await page.getByRole('slider').press('End');
      await page.waitForFunction((text) => !document.body.innerText.includes(text!), before, { timeout: 120_000 });
    }
    await page.getByRole('button', { name: 'Show all' }).click();
    await page.waitForTimeout(1500);
    console.log(`  ${await drawn.textContent()} drawn one by one`);
    for (const move of ['still', 'zoom', 'pan', 'hover']) console.log(`    ${move.padEnd(5)} ${await measure(page, cdp, move)}`);
  }
  await page.close();
});

async function measure(page: Page, cdp: CDPSession, move: string): Promise<string> {
  const before = await threadSeconds(cdp);
  const millis = await page.evaluate(moving, { move, frames });
  const each = ((await threadSeconds(cdp)) - before) / frames;
  const sorted = millis.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.floor(share * sorted.length)]!.toFixed(1);
  return `frame ${at(0.5)} ms in the median, ${at(0.9)} in nine of ten; the page's thread works ${(each * 1000).toFixed(1)} ms of it`;
}

/** threadSeconds is how long the page's thread has worked. */
async function threadSeconds(cdp: CDPSession): Promise<number> {
  const { metrics } = await cdp.send('Performance.getMetrics');
  return metrics.find((m) => m.name === 'TaskDuration')!.value;
}

/** moving runs in the page: it moves the plot once a frame and returns what each frame took. */
async function moving({ move, frames: count }: { move: string; frames: number }): Promise<number[]> {
  const plot = document.querySelector('[data-testid=plot]')!;
  const box = plot.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height * 0.6, bubbles: true, cancelable: true };
  const wheel = (deltaX: number, deltaY: number) => plot.dispatchEvent(new WheelEvent('wheel', { ...at, deltaX, deltaY }));
  if (move === 'pan') for (let i = 0; i < 8; i++) wheel(0, -60);
  const took: number[] = [];
  let last = performance.now();
  for (let i = 0; i < count; i++) {
    const there = i % 90 < 45 ? 1 : -1;
    if (move === 'zoom') wheel(0, -20 * there);
    if (move === 'pan') wheel(15 * there, 0);
    if (move === 'hover') {
      plot.dispatchEvent(
        new PointerEvent('pointermove', { ...at, clientX: at.clientX + box.width * 0.4 * Math.sin(i / 40), clientY: at.clientY + 100 * Math.sin(i / 7) }),
      );
    }
    await new Promise(requestAnimationFrame);
    const now = performance.now();
    took.push(now - last);
    last = now;
  }
  return took;
}
