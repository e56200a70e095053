// The real binary and a real browser, as the tests use them.
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { patience } from './patience';

const binary = resolve(process.env.MEMORYMARK_BIN ?? join(import.meta.dirname, '../../../build/memorymark'));

/** Program is a running command of the binary that serves the page. */
export interface Program {
  url: string;
  pid: number;
  stop(): Promise<void>;
}

/** serve starts memorymark serve with a data folder of its own. */
export async function serve(options: { listen?: string; data?: string; args?: string[] } = {}): Promise<Program> {
  const data = options.data ?? mkdtempSync(join(tmpdir(), 'memorymark-page-'));
  const { child, line } = await start(['serve', '--listen', options.listen ?? '127.0.0.1:0', '--data', data, ...(options.args ?? [])]);
  const url = /https?:\S+/.exec(line)?.[0]; // MemoryMark is at http://…
  if (!url) throw new Error(`no address in ${line}`);
  return {
    url,
    pid: child.pid!,
    stop: async () => {
      await stop(child);
      if (!options.data) rmSync(data, { recursive: true, force: true });
    },
  };
}

/** createToken makes a token for the server of a data folder. */
export function createToken(data: string, name: string): string {
  const made = execFileSync(binary, ['serve', 'token', 'create', name, '--data', data, '--json'], { encoding: 'utf8' });
  return (JSON.parse(made) as { token: string }).token;
}

/** work starts memorymark worker for a server. */
export async function work(server: Program, args: string[]): Promise<{ stop(): Promise<void> }> {
  const { child } = await start(['worker', '--join', server.url, '--drain-timeout', '1s', ...args]);
  return { stop: () => stop(child) };
}

// start runs a command until its first line says that it is ready.
async function start(args: string[]): Promise<{ child: ChildProcess; line: string }> {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const complaints: string[] = [];
  child.stderr.on('data', (text) => complaints.push(String(text)));
  const line = await new Promise<string>((found, failed) => {
    child.on('error', (error) => failed(new Error(`${binary} does not start, build it with make build: ${error.message}`)));
    child.on('exit', (code) => failed(new Error(`${args.join(' ')} ended with ${code}: ${complaints.join('')}`)));
    createInterface(child.stdout).once('line', found);
  });
  return { child, line };
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.removeAllListeners('exit');
  const ended = new Promise((done) => child.once('exit', done));
  child.kill('SIGINT');
  await ended;
}

/** openBrowser starts Chromium without a window, with a profile of its own and without its errands. */
export async function openBrowser(): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    timeout: patience,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
  browser.on('context', (context) => context.setDefaultTimeout(patience));
  return browser;
}

/** run runs a command of the binary to its end. */
export function run(args: string[]) {
  execFileSync(binary, args);
}

/** predictions are what the binary predicts of questions, a line for each: those that it refuses, too. */
export function predictions(questions: unknown[]): string[] {
  const { stdout } = spawnSync(binary, ['predict', '-f', '-'], { input: questions.map((q) => JSON.stringify(q)).join('\n'), encoding: 'utf8', maxBuffer: 1 << 28 });
  return stdout.trim().split('\n');
}

/** nearly is what was expected, with fractions within 1e-9 of themselves: processors round sums differently, in the last digit. */
export function nearly(expected: unknown): unknown {
  if (typeof expected === 'number' && !Number.isInteger(expected)) return expect.toSatisfy((n: unknown) => typeof n === 'number' && Math.abs(n / expected - 1) < 1e-9);
  if (Array.isArray(expected)) return expected.map(nearly);
  if (expected === null || typeof expected !== 'object') return expected;
  return Object.fromEntries(Object.entries(expected).map(([name, value]) => [name, nearly(value)]));
}

/** drop drops a file on something that is on the page, as a person does. */
export async function drop(page: Page, on: Locator, name: string, bytes: Buffer) {
  const transfer = await page.evaluateHandle(
    ([fileName, data]) => {
      const made = new DataTransfer();
      made.items.add(new File([Uint8Array.from(atob(data!), (c) => c.charCodeAt(0))], fileName!));
      return made;
    },
    [name, bytes.toString('base64')],
  );
  await on.dispatchEvent('drop', { dataTransfer: transfer });
}
