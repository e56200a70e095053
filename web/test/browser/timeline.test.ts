// The timeline of a recorded run that died, in a real browser against the real binary.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Browser, Page, Route } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { drop, openBrowser, type Program, serve } from './program';

const example = join(import.meta.dirname, '../../../examples/gpt2_oom.pickle.xz');
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let program: Program;
let browser: Browser;
let page: Page;
let address: string; // of the recorded run

beforeAll(async () => {
  [program, browser] = await Promise.all([serve(), openBrowser()]);
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce' });
  page = await context.newPage();
  await page.goto(`${program.url}/timeline`);
  await drop(page, page.getByText('Drop a snapshot here'), 'gpt2_oom.pickle.xz', readFileSync(example));
  await page.waitForURL(/snapshot=[0-9a-f]{64}/);
  address = page.url();
});

afterAll(async () => {
  await browser?.close();
  await program?.stop();
});

/** open shows the recorded run in a new page and waits until it is drawn. */
async function open() {
  await page.goto(address);
  await page.getByText(/of 8,\d{3}$/).waitFor(); // how many allocations are drawn
}

/** status is where the cursor is, as it is read out. */
function status(): Promise<string | null> {
  return page.getByText(/^Cursor at/).textContent();
}

/** colors counts the colours in the middle of the plot. */
async function colors(): Promise<number> {
  return page.getByTestId('plot').evaluate((plot: HTMLCanvasElement) => {
    const { data } = plot.getContext('2d')!.getImageData(plot.width / 4, plot.height / 4, plot.width / 2, plot.height / 2);
    return new Set(new Uint32Array(data.buffer)).size;
  });
}

/** limits counts the rows of the plot that have a line for the limit, dashed in red from side to side. */
function limits(): Promise<number> {
  return page.getByTestId('plot').evaluate((plot: HTMLCanvasElement) => {
    const { data, width, height } = plot.getContext('2d')!.getImageData(0, 0, plot.width, plot.height);
    const isRed = (at: number) => data[at]! > 150 && data[at + 1]! < 120 && data[at + 2]! < 120;
    const redIn = (row: number) => Array.from({ length: width }, (_, x) => isRed(4 * (row * width + x))).filter(Boolean).length;
    return Array.from({ length: height }, (_, row) => redIn(row)).filter((count) => count > width / 3).length;
  });
}

const selected = () => page.getByRole('region', { name: 'Selection' });

/** sizeOf is a size in MiB. */
function sizeOf(text: string | null): number {
  return Number.parseFloat(text ?? '') * (text?.endsWith('GiB') ? 1024 : 1);
}

test('a dropped snapshot is shown with its peak and why it died', async () => {
  await open();
  await page.getByRole('heading', { name: 'gpt2_oom.pickle.xz' }).waitFor();
  await page.getByText('26,979 events').waitFor();
  await page.getByRole('heading', { name: 'Out of memory at event 26,238' }).waitFor();
  await page.getByText('needs 7.50 GiB, gets past this request').waitFor();
  const failure = page.getByRole('region', { name: 'Out of memory' });
  await failure.getByText(/:\d+ \w+/).first().waitFor(); // the line that asked
  await failure.getByText(/The card (still )?had|A limit forbade more/).waitFor();
  await failure.getByText('What was live, by line').click();
  await expect.poll(() => failure.getByRole('list', { name: 'What was live' }).getByRole('listitem').count()).toBeGreaterThan(1);
  await failure.getByText('The whole run may need more').waitFor(); // what a recording cannot know
  await expect.poll(status).toContain('event 26,238'); // it opens at the failure
  await expect.poll(colors).toBeGreaterThan(5);
  await expect.poll(limits).toBe(1);
});

test('zooming with the wheel shows less, finer, and the button shows all again', async () => {
  await open();
  const plot = page.getByTestId('plot');
  const box = (await plot.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.8, box.y + box.height / 2);
  for (let i = 0; i < 12; i++) await page.mouse.wheel(0, -60);
  await page.getByText(/of [1-9]\d{2}$/).waitFor(); // hundreds of allocations in the window, not thousands
  await page.getByRole('button', { name: 'Show all' }).click();
  await page.getByText(/of 8,\d{3}$/).waitFor();
});

test('a click shows the allocation and its stack', async () => {
  await open();
  await page.getByRole('button', { name: 'Peak', exact: true }).click();
  const box = (await page.getByTestId('plot').boundingBox())!;
  const selection = page.getByRole('region', { name: 'Selection' });
  await expect
    .poll(async () => {
      await page.mouse.move(box.x + box.width * 0.45, box.y + box.height * 0.5);
      await page.mouse.click(box.x + box.width * 0.46, box.y + box.height * 0.5);
      return selection.textContent();
    })
    .toContain('activation');
  await selection.getByText(/^0x[0-9a-f]+$/).waitFor();
  await selection.getByText('Stack, most recent call first').waitFor();
  await expect
    .poll(async () => {
      await page.keyboard.press('Escape'); // again where the answer to the last click came after it
      return selection.textContent();
    })
    .toContain('Click an allocation');
});

test('search finds by size, frame and address, and goes from match to match', async () => {
  await open();
  const search = page.getByLabel('Search by size, address or frame');
  const toolbar = page.getByRole('toolbar', { name: 'Timeline' });
  await page.keyboard.press('/');
  await expect.poll(() => search.evaluate((box) => box === document.activeElement)).toBe(true);
  await search.fill('>400MiB'); // at once: what is typed slowly is searched for letter by letter
  await toolbar.getByText(/^[1-9]\d* found$/).waitFor();
  await search.press('Enter');
  await toolbar.getByText(/^\d+ of \d+$/).waitFor();
  await expect.poll(async () => sizeOf(await selected().getByRole('heading').first().textContent())).toBeGreaterThanOrEqual(400); // what it went to is selected
  await search.fill('fixed_cross_entropy');
  await toolbar.getByText(/^[1-9]\d* found$/).waitFor();
  await search.fill('no such frame');
  await toolbar.getByText('nothing found').waitFor();
  await search.fill('0x7f9ab15ee800');
  await toolbar.getByText(/^[1-9]\d* found$/).waitFor();
});

test('Enter goes to the first match also while the search is under way', async () => {
  await open();
  const search = page.getByLabel('Search by size, address or frame');
  const toolbar = page.getByRole('toolbar', { name: 'Timeline' });
  const held: Route[] = [];
  await page.route(/\/events\?/, (route) => void held.push(route));
  await search.fill('>400MiB');
  await search.press('Enter');
  await expect.poll(() => held.length).toBeGreaterThan(0);
  expect(await toolbar.getByRole('status').textContent()).toBe('searching…');
  await page.unroute(/\/events\?/); // which releases those that are held
  await toolbar.getByText(/^\d+ of \d+$/).waitFor();
  await expect.poll(async () => sizeOf(await selected().getByRole('heading').first().textContent())).toBeGreaterThanOrEqual(400);
});

test('a stack shows the lines of the program, and folds those of libraries', async () => {
  await open();
  await page.getByLabel('Search by size, address or frame').fill('transformers/activations.py');
  await page.getByRole('toolbar', { name: 'Timeline' }).getByText('756 found').waitFor();
  await page.keyboard.press('Enter');
  const stack = selected().getByRole('list', { name: 'Stack' });
  await stack.getByText('train.py').first().waitFor();
  const weights = await stack.locator('p', { hasText: 'train.py' }).locator('span').evaluateAll((spans) => spans.map((s) => getComputedStyle(s).fontWeight));
  expect(weights[0]).toBe('700');
  await stack.getByText(/^\d+ frames of torch/).first().click();
  await stack.getByText('torch/nn/modules/module.py').first().waitFor();
  const broken = await stack
    .locator('span.whitespace-nowrap')
    .evaluateAll((numbers) => numbers.filter((n) => new Set([...n.getClientRects()].map(({ top }) => top)).size > 1).length); // lines that one takes
  expect(broken).toBe(0);
});

test('a link shows the same moment to somebody else', async () => {
  await open();
  await page.getByLabel('Search by size, address or frame').fill('>400MiB');
  await page.getByRole('toolbar', { name: 'Timeline' }).getByText(/^[1-9]\d* found$/).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('toolbar', { name: 'Timeline' }).getByText(/^\d+ of \d+$/).waitFor();
  await page.keyboard.press('Enter'); // past the peak, which needs no address
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.waitForURL(/view=\d+\.\.\d+/);
  await page.waitForURL(/find=%3E400MiB/);
  await page.waitForURL(/at=\d+/);
  const before = await status();
  const link = page.url();
  const other = await page.context().newPage();
  const addresses: string[] = [];
  other.on('framenavigated', (frame) => addresses.push(frame.url()));
  await other.goto(link);
  await expect.poll(() => other.getByText(/^Cursor at/).textContent()).toBe(before);
  await expect.poll(() => other.getByLabel('Search by size, address or frame').inputValue()).toBe('>400MiB');
  await other.getByRole('button', { name: 'Show all' }).click();
  await other.waitForURL((url) => !url.searchParams.has('view'));
  const moments = addresses.map((seen) => new URL(seen).searchParams);
  const [first, last] = [new URL(link).searchParams, new URL(link).searchParams];
  last.delete('view');
  expect(moments.map(String)).toEqual([String(first), String(last)]); // until then it stayed what it was
  await other.close();
});

test('what is largest fits a phone, and no line number is broken', async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 } });
  const phone = await context.newPage();
  await phone.goto(address);
  const table = phone.getByRole('group', { name: 'Table of the largest, scrollable' });
  await table.getByText(/\.py:\d+ /).first().waitFor();
  await expect.poll(() => table.evaluate((found) => found.scrollWidth - found.clientWidth)).toBe(0);
  // Each word and each number stands on one line: its box is as high as a line.
  const broken = await table.evaluate((found) =>
    [...found.querySelectorAll('td:last-child')].flatMap((cell) =>
      [...cell.childNodes].flatMap((node) => {
        const number = /:\d+/.exec(node.textContent ?? '');
        if (!number) return [];
        const range = document.createRange();
        range.setStart(node, number.index);
        range.setEnd(node, number.index + number[0].length);
        return range.getClientRects().length > 1 ? [node.textContent] : [];
      }),
    ),
  );
  expect(broken).toEqual([]);
  await context.close();
});

test('a tap selects, as a click does', async () => {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const phone = await context.newPage();
  await phone.goto(address);
  await phone.getByText(/^Cursor at/).waitFor({ state: 'attached' });
  const plot = phone.getByTestId('plot');
  const selection = phone.getByRole('region', { name: 'Selection' });
  // What comes in above the plot moves it: the tap is where it is then.
  await expect
    .poll(async () => {
      await plot.scrollIntoViewIfNeeded();
      const box = (await plot.boundingBox())!;
      await phone.touchscreen.tap(box.x + box.width * 0.85, box.y + box.height * 0.6);
      return selection.getByText(/^event/).count();
    })
    .toBeGreaterThan(0);
  await context.close();
});

/** atTheEnd is where a band stands in the last column; it is sent as differences. */
function atTheEnd({ bottoms }: { bottoms: number[] }): number {
  return bottoms.reduce((sum, change) => sum + change);
}

test('parameters are at the bottom, however little is drawn one by one', async () => {
  const id = new URL(address).searchParams.get('snapshot');
  const timeline = async (detail: number) =>
    (await (await fetch(`${program.url}/v1/snapshots/${id}/timeline?detail=${detail}&columns=100`)).json()) as {
      groups: { label: string }[];
      bands: { group: number; bottoms: number[] }[];
    };
  const { groups, bands } = await timeline(1);
  const lowest = bands.toSorted((a, b) => atTheEnd(a) - atTheEnd(b))[0]!;
  expect(groups[lowest.group]!.label).toBe('parameter');
  await open();
  await page.getByRole('slider').press('Home'); // as little as there is
  await expect.poll(colors).toBeGreaterThan(3);
});

test('a range that is drawn is summed up by line, module and category', async () => {
  await open();
  const box = (await page.getByTestId('plot').boundingBox())!;
  const at = (share: number) => [box.x + box.width * share, box.y + box.height / 2] as const;
  await page.keyboard.down('Shift');
  await page.mouse.move(...at(0.3));
  await page.mouse.down();
  await page.mouse.move(...at(0.4), { steps: 3 });
  await page.mouse.move(...at(0.5), { steps: 3 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  const range = page.getByRole('region', { name: 'Range' });
  await range.getByText(/^Events [\d,]+ to [\d,]+, .* made in [\d,]+ allocations/).waitFor();
  await range.getByRole('cell', { name: /modeling_gpt2\.py:\d+ forward/ }).first().waitFor();
  await range.getByRole('combobox', { name: 'By' }).selectOption('category');
  await range.getByRole('cell', { name: 'activation', exact: true }).waitFor();
  await range.getByRole('combobox', { name: 'By' }).selectOption('module');
  await range.getByRole('cell', { name: 'transformers/activations' }).waitFor();
  const drawn = await range.getByText(/^Events/).textContent();
  await page.reload(); // the address has it
  await expect.poll(() => range.getByText(/^Events/).textContent()).toBe(drawn);
  await page.getByText(/of 8,\d{3}$/).waitFor();
  await range.getByRole('button', { name: 'Clear' }).click();
  await page.keyboard.press('r'); // what is seen, which is all
  await range.getByText('Events 0 to 26,978').waitFor();
});

test('a finger draws a range after the button for it', async () => {
  await open();
  await page.getByRole('button', { name: 'Draw a range' }).click();
  const box = (await page.getByTestId('plot').boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.5, box.y + 200);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 200, { steps: 4 });
  await page.mouse.up();
  await page.getByRole('region', { name: 'Range' }).getByText(/^Events/).waitFor();
  await expect.poll(() => page.getByRole('button', { name: 'Draw a range' }).getAttribute('aria-pressed')).toBe('false');
});

test('a flame graph shows who made what is live, at the cursor and at the peak', async () => {
  await page.goto(`${address}&tab=flame&at=100`);
  const flame = page.getByRole('region', { name: 'Flame graph' });
  await flame.getByText('after event 100').first().waitFor();
  await flame.getByRole('combobox', { name: 'At' }).selectOption('the peak');
  await flame.getByText('after event 22,054').first().waitFor();
  const step = flame.getByRole('button', { name: /^step train\.py:119: [\d.]+ GiB, [\d.]+ %/ }).first();
  const before = (await step.boundingBox())!.width;
  await step.click();
  await expect.poll(async () => (await step.boundingBox())!.width).toBeGreaterThan(before);
  await expect.poll(() => step.evaluate((row) => getComputedStyle(row).fontWeight)).toBe('700');
  await flame.getByRole('button', { name: 'Show all rows' }).click();
  await expect.poll(async () => (await step.boundingBox())!.width).toBeCloseTo(before, 0);
});

test('a recording that no GPU made is labelled', async () => {
  const id = new URL(address).searchParams.get('snapshot');
  await page.route(`**/v1/snapshots/${id}`, async (route) => {
    const answer = await route.fetch();
    await route.fulfill({ response: answer, json: { ...((await answer.json()) as object), kind: 'emulated' } });
  });
  await page.goto(address);
  await page.getByText('emulated', { exact: true }).waitFor();
  await page.unroute(`**/v1/snapshots/${id}`);
  await page.goto(address);
  await page.getByText('recorded', { exact: true }).waitFor();
});

test('everything can be done with the keys', async () => {
  await open();
  await page.keyboard.press('o');
  await expect.poll(status).toContain('event 26,238');
  await page.keyboard.press('p');
  await page.keyboard.press(']');
  await expect.poll(status).toContain('event 22,055');
  for (const key of ['+', '+', 'ArrowLeft', 'ArrowRight', '-', '}', '{', 'f', '0']) await page.keyboard.press(key);
  await page.keyboard.press('p');
  const selection = page.getByRole('region', { name: 'Selection' });
  await page.keyboard.press('j');
  await selection.getByText(/^#\d/).waitFor();
  const first = await selection.getByText(/^#\d/).textContent();
  await page.keyboard.press('j');
  await expect.poll(() => selection.getByText(/^#\d/).textContent()).not.toBe(first);
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('tab', { name: 'Range' }).focus();
  await page.keyboard.press('ArrowRight');
  await page.getByText(/in \d+ segments/).waitFor();
  await page.getByTestId('segments').focus();
  await page.keyboard.press('ArrowRight');
  await page.getByText(/segment of/).waitFor();
});

test('events are paged, filtered and gone to', async () => {
  await page.goto(`${address}&tab=events`);
  const list = page.getByRole('listbox', { name: 'Events of this page' });
  await list.getByRole('option', { selected: true }).waitFor();
  await page.getByLabel('Go to event').fill('12345');
  await page.getByLabel('Go to event').press('Enter');
  await list.getByText('12,345', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Later' }).click();
  await list.getByText('12,400', { exact: true }).waitFor();
  await page.getByRole('combobox', { name: 'Show' }).selectOption('out of memory');
  await list.getByText('26,238', { exact: true }).waitFor();
});

test('a replay answers what other settings would have done', async () => {
  await page.goto(`${address}&tab=replay`);
  const replay = page.getByRole('region', { name: 'Replay' });
  const row = (name: string) => replay.getByRole('row', { name }).getByRole('cell');
  await replay.getByText('the simulation matches the recording').waitFor();
  await replay.getByText('Does not fit').waitFor(); // it is the recording of a run that died
  await expect.poll(() => row('peak reserved').allTextContents()).toEqual(['7.93 GiB']);
  await replay.getByLabel('limit').fill('8GiB');
  await replay.getByLabel('expandable-segments').selectOption('on');
  await replay.getByLabel('limit').press('Enter');
  await replay.getByText('Fits', { exact: true }).waitFor();
  await replay.getByText('within 8.00 GiB').waitFor();
  await expect.poll(() => row('reserved at the end').allTextContents()).toEqual(['7.93 GiB', '7.03 GiB']);
  await replay.getByText('memorymark snapshot replay FILE --limit 8GiB --expandable-segments').waitFor();
  await page.reload(); // the address has it all
  await replay.getByText('Fits', { exact: true }).waitFor();
  await expect.poll(() => replay.getByLabel('limit').inputValue()).toBe('8GiB');
  await replay.getByLabel('limit').fill('7GiB');
  await replay.getByLabel('expandable-segments').selectOption('as recorded');
  await replay.getByRole('button', { name: 'Replay' }).click();
  await replay.getByRole('button', { name: 'Show event 21,939' }).click();
  await expect.poll(status).toContain('event 21,939');
});

test('a replay says what cannot be', async () => {
  await page.goto(`${address}&tab=replay`);
  const replay = page.getByRole('region', { name: 'Replay' });
  await replay.getByLabel('limit').fill('a lot');
  await replay.getByRole('button', { name: 'Replay' }).click();
  await replay.getByText('Enter an amount, such as 24GiB').waitFor();
  await replay.getByLabel('limit').fill('');
  await replay.getByLabel('max-split-size').fill('1MiB');
  await replay.getByRole('button', { name: 'Replay' }).click();
  await replay.getByRole('alert').getByText('20').first().waitFor();
});

test('a prediction has a timeline, and two of them can be laid over each other', async () => {
  const ids: string[] = [];
  for (const batch of [4, 5]) {
    await page.goto(`${program.url}/timeline?model=distilbert&gpu=t4&batch=${batch}`);
    await page.getByText('predicted', { exact: true }).waitFor();
    await expect.poll(colors).toBeGreaterThan(5);
  }
  const { snapshots } = (await (await fetch(`${program.url}/v1/snapshots`)).json()) as { snapshots: { id: string; origin: string }[] };
  ids.push(...snapshots.filter((s) => s.origin === 'predicted').map((s) => s.id));
  expect(ids).toHaveLength(2);
  await page.goto(`${program.url}/timeline?snapshot=${ids[0]}&with=${ids[1]}`);
  await page.getByText(/makes the same first [\d,]+ requests, then differs/).waitFor();
  const before = await status();
  await page.getByRole('button', { name: 'First difference' }).click();
  await expect.poll(status).not.toBe(before);
  await page.getByRole('button', { name: 'What grew' }).click();
  const grew = page.getByRole('region', { name: 'What grew' });
  await grew.getByText(/KiB (more|less)\.$/).waitFor(); // the optimizer decides the peak: only the batch itself is larger
  await expect.poll(() => grew.getByRole('listitem').allTextContents()).toEqual([expect.stringMatching(/^[+−]1\.01 KiB.*input/)]);
});

test('other pages take over the workload of a timeline, and nothing of a recording', async () => {
  const cards = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Cards' });
  await page.goto(`${program.url}/timeline?model=distilbert&gpu=t4&batch=4&tab=events`);
  await expect.poll(() => cards.getAttribute('href')).toBe('/cards?model=distilbert&gpu=t4&batch=4');
  await page.goto(`${address}&tab=events`);
  await page.getByText(/of 8,\d{3}$/).waitFor();
  await expect.poll(() => cards.getAttribute('href')).toBe('/cards');
});

test.each(['stack', 'flame', 'range&range=9000..12000', 'segments', 'events', 'replay'])('it is accessible in both themes and fits a phone: %s', async (tab) => {
  await page.goto(`${address}&tab=${tab}`);
  await page.getByText(/of 8,\d{3}$/).waitFor();
  await page.keyboard.press('j');
  await page.getByText('Stack, most recent call first').waitFor();
  await page.evaluate(axe);
  for (const theme of ['dark', 'light']) {
    await page.evaluate((value) => document.documentElement.setAttribute('data-theme', value), theme);
    const found = await page.evaluate(async () => {
      const { violations } = await (
        globalThis as unknown as { axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> } }
      ).axe.run();
      return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html}`));
    });
    expect(found, theme).toEqual([]);
  }
  for (const width of [320, 390, 768]) {
    await page.setViewportSize({ width, height: 844 });
    await expect.poll(() => page.evaluate(() => document.documentElement.scrollWidth), { message: `${width} wide` }).toBeLessThanOrEqual(width);
  }
  await page.setViewportSize({ width: 1280, height: 900 });
});

test('remedies of a prediction are those of the whole run', async () => {
  await page.goto(`${program.url}/timeline?model=gpt2&gpu=a10&batch=120`);
  const failure = page.getByRole('region', { name: 'Out of memory' });
  await failure.getByText(/^The whole run needs [\d.]+ GiB more/).waitFor();
  expect(await failure.getByText('gets past this request', { exact: true }).count()).toBe(0);
  await failure.getByRole('list', { name: 'Changes that make it fit' }).getByRole('link').first().click();
  await page.waitForURL(/accumulate=|checkpointing=true|precision=/);
  await page.getByTestId('plot').waitFor();
  expect(await failure.count()).toBe(0);
});
