// A site without a server: questions are answered by MemoryMark itself, compiled to WebAssembly, in a worker.

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

let worker: Worker | undefined;
let asked = 0;
const waiting = new Map<number, { resolve: (told: Told) => void; reject: (reason: Error) => void }>();

function engine(): Worker {
  if (worker) return worker;
  worker = new Worker(new URL(`${site}engine/engine.js`, startedAt));
  worker.addEventListener('message', ({ data }: MessageEvent<Told>) => {
    const failure = data.failed === undefined ? undefined : new Error(data.failed);
    for (const [id, { resolve, reject }] of waiting) {
      if (failure) reject(failure);
      else if (id !== data.id) continue;
      else resolve(data);
      waiting.delete(id);
    }
  });
  return worker;
}

/** ask answers a request in this browser. */
export async function ask(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url);
  const body = await request.arrayBuffer();
  const id = ++asked;
  const told = await new Promise<Told>((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    request.signal.addEventListener('abort', () => reject(request.signal.reason as Error));
    engine().postMessage({ id, method: request.method, target: pathname + search, body }, [body]);
  });
  return new Response(told.body, { status: told.status, headers: { 'Content-Type': told.type } });
}
