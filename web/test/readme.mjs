// The README's picture of the page after an analysis, taken of the real program.
// `make pictures` runs it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const binary = resolve(process.env.MEMORYMARK_BIN ?? 'build/memorymark');
const into = resolve(import.meta.dirname, '../../docs/images');

const data = mkdtempSync(join(tmpdir(), 'memorymark-pictures-'));
const server = spawn(binary, ['serve', '--json', '--listen', '127.0.0.1:0', '--data', data], { stdio: ['ignore', 'pipe', 'ignore'] });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const url = await address();
  await page(`${url}/?model=bert&gpu=a10`);
} finally {
  await browser.close();
  server.kill();
  rmSync(data, { recursive: true, force: true, maxRetries: 5 });
}

/** where the server says it is */
function address() {
  return new Promise((found, failed) => {
    let said = '';
    server.stdout.on('data', (bytes) => {
      said += bytes;
      if (said.includes('}')) found(JSON.parse(said).url);
    });
    server.on('exit', (code) => failed(new Error(`the server ended with ${code}`)));
  });
}

async function page(url) {
  const tab = await browser.newPage({ viewport: { width: 1440, height: 1040 }, reducedMotion: 'reduce', colorScheme: 'dark' });
  await tab.goto(url);
  await tab.getByRole('button', { name: 'Apply checkpointing' }).waitFor({ timeout: 120_000 });
  await tab.screenshot({ path: join(into, 'page.png') });
}
