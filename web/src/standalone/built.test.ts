import { readFile } from 'node:fs/promises';
import { build } from 'vite';
import { expect, test } from 'vitest';

test('the committed script is what the sources make; npm run standalone writes it', async () => {
  const config = { configFile: 'standalone.config.ts', logLevel: 'error', build: { write: false } } as const;
  const built = await build(config);
  const [bundle] = Array.isArray(built) ? built : [];
  const script = bundle?.output[0];
  const committed = await readFile('../internal/draw/html/timeline.js', 'utf8');
  expect(script?.type === 'chunk' && script.code).toBe(committed);
});
