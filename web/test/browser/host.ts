// A host of plain files that knows nothing else, with the site in a sub-folder.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, resolve } from 'node:path';

/** The folder of the built site. */
export const folder = resolve(process.env.MEMORYMARK_SITE ?? join(import.meta.dirname, '../../../build/site'));
const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.svg': 'image/svg+xml', '.wasm': 'application/wasm' };
const place = '/some/place/';

export interface Host {
  home: string;
  close(): void;
}

export async function openHost(): Promise<Host> {
  if (!existsSync(join(folder, 'index.html'))) throw new Error(`${folder} has no site: make site`);
  const server = createServer((request, response) => {
    const path = new URL(request.url!, 'http://host').pathname;
    let file = join(folder, path.slice(place.length - 1));
    if (path.startsWith(place) && existsSync(file) && statSync(file).isDirectory()) file = join(file, 'index.html');
    if (!path.startsWith(place) || !existsSync(file)) return void response.writeHead(404).end();
    response.writeHead(200, { 'Content-Type': types[extname(file)] ?? 'application/octet-stream' });
    createReadStream(file).pipe(response);
  }).listen(0, '127.0.0.1');
  await new Promise((ready) => server.once('listening', ready));
  return { home: `http://localhost:${(server.address() as AddressInfo).port}${place}`, close: () => server.close() };
}
