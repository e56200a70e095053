import react from '@vitejs/plugin-react';
import tailwindcss from '@tailwindcss/vite';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';
import { defineConfig } from 'vitest/config';
import { patience } from './test/browser/patience.ts';

// The server that npm run dev sends API requests to.
const server = process.env.MEMORYMARK_URL ?? 'http://127.0.0.1:5001';

interface Graph {
  getModuleInfo(id: string): { isEntry: boolean; importers: readonly string[] } | null;
}

const ofStart = new Map<string, boolean>();

/** isOfStart reports whether a module is loaded with the entry, and not only by a page that is looked at later. */
function isOfStart(id: string, graph: Graph): boolean {
  if (!ofStart.has(id)) {
    ofStart.set(id, false); // while modules that import each other are followed
    const module = graph.getModuleInfo(id);
    ofStart.set(id, module !== null && (module.isEntry || module.importers.some((importer) => isOfStart(importer, graph))));
  }
  return ofStart.get(id)!;
}

// A server has no time to compress as well as this.
const brotli = {
  name: 'brotli',
  writeBundle({ dir }: { dir?: string }, bundle: object) {
    for (const name of Object.keys(bundle).filter((each) => each.startsWith('assets/'))) {
      const file = join(dir!, name);
      writeFileSync(`${file}.br`, brotliCompressSync(readFileSync(file)));
    }
  },
};

export default defineConfig({
  plugins: [react(), tailwindcss(), brotli],
  build: {
    // .keep holds the folder in the repository, so that Go can embed it.
    emptyOutDir: false,
    target: 'es2023',
    modulePreload: { polyfill: false },
    // What the start needs is one file, and what several pages share is another: they compress better than twenty small ones.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: (id, graph) => (isOfStart(id, graph) ? 'start' : null) }, { name: 'shared', minShareCount: 2 }] } } },
  },
  server: { proxy: Object.fromEntries(['/v1', '/health', '/ready', '/openapi.json'].map((path) => [path, server])) },
  test: {
    projects: [
      { extends: true, test: { name: 'unit', include: ['src/**/*.test.{ts,tsx}'], testTimeout: patience } },
      {
        test: {
          name: 'browser',
          include: ['test/browser/*.test.ts'],
          testTimeout: 2 * patience, // so that what was waited for is told, and not only that time is up
          hookTimeout: 2 * patience,
          fileParallelism: false,
          expect: { poll: { timeout: patience } },
        },
      },
      { test: { name: 'bench', include: ['test/bench/timeline.ts'], testTimeout: 600_000, hookTimeout: 60_000 } },
      { test: { name: 'screenshots', include: ['test/screenshots.ts'], testTimeout: 300_000, hookTimeout: 60_000 } },
    ],
  },
});
