// The two pictures of the README, taken of the real program: the page after an
// analysis, and a terminal. `make pictures` runs it.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const binary = resolve(process.env.MEMORYMARK_BIN ?? 'build/memorymark');
const into = resolve(import.meta.dirname, '../../docs/images');
const command = ['analyze', 'gpt2', '--gpu', 'rtx-4090', '--precision', 'amp-bf16', '--sweep', '--engine', 'predicted'];
const colours = { 30: '#555', 31: '#ff5f5f', 32: '#00ff88', 33: '#ffd75f', 34: '#5fafff', 35: '#d787ff', 36: '#5fd7d7', 37: '#ddd', 90: '#888', 92: '#00ff88' };

const data = mkdtempSync(join(tmpdir(), 'memorymark-pictures-'));
const server = spawn(binary, ['serve', '--json', '--listen', '127.0.0.1:0', '--data', data], { stdio: ['ignore', 'pipe', 'ignore'] });
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const url = await address();
  await page(`${url}/?model=bert&gpu=a10`);
  await terminal();
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
  const tab = await browser.newPage({ viewport: { width: 1440, height: 1040 }, reducedMotion: 'reduce' });
  await tab.goto(url);
  await tab.getByRole('button', { name: 'Apply Activation checkpointing' }).waitFor({ timeout: 120_000 });
  await tab.screenshot({ path: join(into, 'page.png') });
}

async function terminal() {
  const text = execFileSync(binary, command, { env: { ...process.env, CLICOLOR_FORCE: '1', TERM: 'xterm-256color' }, encoding: 'utf8' });
  const tab = await browser.newPage({ viewport: { width: 1000, height: 600 } });
  await tab.setContent(`<pre style="margin:0;padding:20px;width:max-content;background:#0a0a0a;color:#ccc;font:14px/1.35 'DejaVu Sans Mono',monospace">` +
    `<span style="color:#00ff88">$</span> memorymark ${command.join(' ')}\n${spans(text)}</pre>`);
  await tab.locator('pre').screenshot({ path: join(into, 'terminal.png') });
}

/** ANSI's colours as HTML: each piece begins with its codes, as in 1;32mtext */
function spans(text) {
  const [plain, ...pieces] = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').split('\u001b[');
  const coloured = pieces.map((piece) => {
    const end = piece.indexOf('m');
    return `<span style="${style(piece.slice(0, end))}">${piece.slice(end + 1)}</span>`;
  });
  return plain + coloured.join('');
}

function style(codes) {
  const list = codes.split(';').map(Number);
  const at = list.indexOf(38);
  const rgb = at >= 0 && list[at + 1] === 2 ? `color:rgb(${list.slice(at + 2, at + 5)});` : '';
  const named = list.map((code) => (colours[code] ? `color:${colours[code]};` : '')).join('');
  return rgb + (at >= 0 ? '' : named) + (list.includes(1) ? 'font-weight:bold;' : '') + (list.includes(2) ? 'opacity:.6;' : '');
}
