import { join } from 'node:path';
import type { Page } from 'playwright-core';

interface Shot {
  name: string;
  path: string;
  /** makes the page worth a picture */
  ready(page: Page, url: string): Promise<unknown>;
  /** without what must be scrolled to */
  onlyWindow?: boolean;
}

export const shots: Shot[] = [
  {
    name: 'analyze',
    path: '/?model=bert&gpu=a10',
    ready: (page) => page.getByRole('button', { name: 'Apply Activation checkpointing' }).waitFor(),
  },
  {
    name: 'too-large',
    path: '/?model=llama-3.1-8b&gpu=a10',
    ready: (page) => page.getByText('This does not train').waitFor(),
  },
  {
    name: 'cards',
    path: '/cards?model=gpt2&precision=amp-bf16',
    ready: (page) => page.getByText("Each is simulated with PyTorch's allocator").waitFor({ timeout: 120_000 }),
  },
  {
    name: 'settings',
    path: '/settings?model=gpt2&gpu=rtx-4090',
    ready: (page) => page.getByText("Each is simulated with PyTorch's allocator").waitFor({ timeout: 120_000 }),
  },
  { name: 'sources', path: '/timeline', ready: (page) => page.getByText('Drop a snapshot here').waitFor() },
  {
    name: 'timeline',
    path: '/timeline',
    onlyWindow: true,
    ready: async (page) => {
      await page.getByLabel('Snapshot file').setInputFiles(join(import.meta.dirname, '../../examples/gpt2_oom.pickle.xz'));
      await page.getByText(/^[1-9][\d,]* of [\d,]+$/).waitFor(); // allocations that are drawn
      await page.keyboard.press('j');
      await page.getByText('Stack, most recent call first').waitFor();
    },
  },
  {
    name: 'segments',
    path: '/timeline?model=gpt2&gpu=a10&tab=segments',
    ready: async (page) => {
      await page.getByText(/in \d+ segments/).waitFor();
      await page.getByText(/^[\d,]+ of [1-9][\d,]+$/).waitFor();
    },
  },
  {
    name: 'replay',
    path: '/timeline?model=gpt2&gpu=a10&tab=replay&replay-limit=6GiB&replay-expandable-segments=true',
    ready: (page) => page.getByText('As recorded, the simulation').waitFor(),
  },
  {
    name: 'study',
    path: '/study?gpu=h200',
    ready: (page) => page.getByText(/exact in|95 % within/).first().waitFor({ timeout: 240_000 }),
  },
  {
    name: 'history',
    path: '/history',
    ready: async (page, url) => {
      const kept = (await (await page.request.get(`${url}/v1/analyses`)).json()) as { total: number };
      if (kept.total === 0) await ask(page, url);
      await page.getByText('done').nth(2).waitFor();
    },
  },
  {
    name: 'kept',
    path: '/history',
    ready: async (page, url) => {
      const begun = await page.request.post(`${url}/v1/analyses`, { data: { workload: { model: 'bert', gpu: 'a10' }, engine: 'predicted' } });
      const { id } = (await begun.json()) as { id: string };
      await page.goto(`${url}/history/${id}`);
      await page.getByRole('log').getByText('done', { exact: true }).waitFor();
    },
  },
  {
    name: 'drain',
    path: '/workers',
    ready: async (page) => {
      await page.getByRole('button', { name: 'Drain', exact: true }).click();
      await page.getByRole('button', { name: 'Drain it' }).waitFor();
    },
  },
  { name: 'workers', path: '/workers', ready: (page) => page.getByText('ready').first().waitFor() },
  {
    name: 'terminal',
    path: '/?model=bert&gpu=a10',
    onlyWindow: true,
    ready: async (page) => {
      await page.getByRole('button', { name: 'Save' }).click();
      await page.getByRole('log').getByText('done', { exact: true }).waitFor();
      await page.getByRole('heading', { level: 1 }).waitFor();
    },
  },
];

// ask fills the history.
async function ask(page: Page, url: string) {
  for (const workload of [{ model: 'bert' }, { model: 'gpt2', precision: 'amp-bf16' }, { model: 'vit', gpu: 'rtx-4090', batch: 32 }]) {
    await page.request.post(`${url}/v1/analyses`, { data: { workload, engine: 'predicted' } });
  }
  await page.request.post(`${url}/v1/analyses`, { data: { workload: { model: 'bert', gpu: 'h200' }, engine: 'measured' } });
}
