// How smoothly the timeline moves at 100,000 and at a million allocations, without a graphics card. It prints and
// judges nothing: frames depend on what else the machine does, so those of a page that stands still are given with them.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
  await page.addInitScript(timeDrawing);
  await page.goto(`${program.url}/timeline`);
  const start = Date.now();
  const busy = processorSeconds();
  await page.getByLabel('Snapshot file').setInputFiles(file);
  const drawn = page.getByText(/^[1-9][\d,]* of [\d,]+$/);
  await drawn.waitFor({ timeout: 240_000 });
  console.log(
    `${allocations.toLocaleString('en-US')} allocations, ${megabytes(statSync(file).size)}: first picture after ${Date.now() - start} ms; ` +
      `the server worked ${(processorSeconds() - busy).toFixed(2)} s and has had ${megabytes(mostMemory())}`,
  );
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

const megabytes = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;

/** processorSeconds is how long the server has kept cores busy, by /proc. */
function processorSeconds(): number {
  const fields = readFileSync(`/proc/${program.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** mostMemory is the most that the server has had resident, in bytes. */
function mostMemory(): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${program.pid}/status`, 'utf8'))![1]) * 1024;
}

async function measure(page: Page, cdp: CDPSession, move: string): Promise<string> {
  const before = await threadSeconds(cdp);
  const { took, drawing } = await page.evaluate(moving, { move, frames });
  const each = ((await threadSeconds(cdp)) - before) / frames;
  return `frame ${spread(took)}; drawing ${spread(drawing)}; the page's thread works ${(each * 1000).toFixed(1)} ms of it`;
}

function spread(millis: number[]): string {
  const sorted = millis.toSorted((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(share * sorted.length)] ?? 0).toFixed(1);
  return `${at(0.5)} ms in the median, ${at(0.95)} in 95 of 100`;
}

/** threadSeconds is how long the page's thread has worked. */
async function threadSeconds(cdp: CDPSession): Promise<number> {
  const { metrics } = await cdp.send('Performance.getMetrics');
  return metrics.find((m) => m.name === 'TaskDuration')!.value;
}

interface Timed {
  drawing?: number[];
  untimed?: typeof requestAnimationFrame;
}

/** timeDrawing runs in the page before it: it notes how long what is done in a frame takes, which is the drawing. */
function timeDrawing() {
  const request = globalThis.requestAnimationFrame.bind(globalThis);
  (globalThis as Timed).untimed = request;
  globalThis.requestAnimationFrame = (callback) =>
    request((time) => {
      const began = performance.now();
      callback(time);
      (globalThis as Timed).drawing?.push(performance.now() - began);
    });
}

/** moving runs in the page: it moves the plot once a frame and returns what each frame, and drawing in it, took. */
async function moving({ move, frames: count }: { move: string; frames: number }): Promise<{ took: number[]; drawing: number[] }> {
  const plot = document.querySelector('[data-testid=plot]')!;
  const box = plot.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height * 0.6, bubbles: true, cancelable: true };
  const wheel = (deltaX: number, deltaY: number) => plot.dispatchEvent(new WheelEvent('wheel', { ...at, deltaX, deltaY }));
  if (move === 'pan') for (let i = 0; i < 8; i++) wheel(0, -60);
  const took: number[] = [];
  const drawing: number[] = [];
  (globalThis as Timed).drawing = drawing;
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
    await new Promise((globalThis as Timed).untimed!);
    const now = performance.now();
    took.push(now - last);
    last = now;
  }
  return { took, drawing };
}
