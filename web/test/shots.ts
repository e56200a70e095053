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
];
