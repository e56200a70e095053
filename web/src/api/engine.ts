// A site without a server: questions are answered by MemoryMark itself, compiled to WebAssembly, in workers: one
// predicts, and one, which begins when it is needed, reads snapshots.
import { Problem } from './problem';

/** Where the site is: its pages are in folders, which say how far up its files are. */
export const site = globalThis.document?.querySelector<HTMLMetaElement>('meta[name="memorymark-site"]')?.content;

/** The path of the site, which its addresses begin with; empty where a server answers. */
export const sitePath = site === undefined ? '' : new URL(site, location.href).pathname.replace(/\/$/, '');

interface Told {
  id?: number;
  status: number;
  type: string;
  body: ArrayBuffer;
  failed?: string;
}

// The address changes with the page; what it was at the start is what the site's folder is relative to.
const startedAt = globalThis.location?.href;

type Program = 'engine' | 'snapshots';

const workers = new Map<Program, Worker>();
let asked = 0;
const waiting = new Map<number, { program: Program; resolve: (told: Told) => void; reject: (reason: Error) => void }>();

function workerOf(program: Program): Worker {
  const there = workers.get(program);
  if (there) return there;
  const worker = new Worker(new URL(`${site}engine/engine.js`, startedAt), { name: program });
  workers.set(program, worker);
  worker.addEventListener('message', ({ data }: MessageEvent<Told>) => {
    if (data.failed !== undefined) return fail(program, data.failed);
    waiting.get(data.id!)?.resolve(data);
    waiting.delete(data.id!);
  });
  return worker;
}

/** fail gives up what a program was asked; the next question begins it again. */
function fail(program: Program, why: string) {
  workers.get(program)?.terminate();
  workers.delete(program);
  for (const [id, each] of waiting) {
    if (each.program !== program) continue;
    each.reject(new Problem(-1, why, [], 'Try again, or start a server of your own: uvx memorymark serve.'));
    waiting.delete(id);
  }
}

/** ask answers a request in this browser. */
export async function ask(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const told = await tell(request.method, pathname + search, await request.arrayBuffer(), request.signal);
  return new Response(told.body, { status: told.status, headers: { 'Content-Type': told.type } });
}

/** tell sends a question with its body to the program that it is for. A file is not copied: it is read where it is. */
export function tell(method: string, target: string, body: ArrayBuffer | File, signal: AbortSignal): Promise<Told> {
  const id = ++asked;
  const program = target.startsWith('/v1/snapshots') ? 'snapshots' : 'engine';
  return new Promise((resolve, reject) => {
    waiting.set(id, { program, resolve, reject });
    signal.addEventListener('abort', () => reject(signal.reason as Error));
    workerOf(program).postMessage({ id, method, target, body }, body instanceof File ? [] : [body]);
  });
}
