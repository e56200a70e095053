// How questions reach whoever answers them. Everything that the page asks goes through here, so that another
// program than a server can answer: one that is compiled into the page, for example.

import { ask, site, tell } from './engine';

/** What makes the server compute. It has few cores; who asks for more at once than it takes is refused. */
const computed = /^\/v1\/(predictions|fits|comparisons|plans|sweeps|reports|activations)\b/;
const atOnce = 3;
const turns = new Set<() => void>(); // in the order of asking
let computing = 0;

/** send asks one question. What is computed takes turns; who is told to come again does so, until the answer is no longer awaited. */
export async function send(request: Request): Promise<Response> {
  if (!computed.test(new URL(request.url).pathname)) return untilAdmitted(request);
  await turn(request.signal);
  try {
    return await untilAdmitted(request);
  } finally {
    computing--;
    turns.values().next().value?.();
  }
}

/** turn waits until fewer than atOnce questions are being computed. */
function turn(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const begin = () => {
      turns.delete(begin);
      signal.removeEventListener('abort', leave);
      computing++;
      resolve();
    };
    const leave = () => {
      turns.delete(begin);
      reject(signal.reason as Error);
    };
    if (computing < atOnce) return begin();
    turns.add(begin);
    signal.addEventListener('abort', leave);
  });
}

const mostRefusals = 20;

async function untilAdmitted(request: Request): Promise<Response> {
  const { url, method, headers, signal, keepalive } = request;
  const body = request.body ? await request.text() : undefined; // a stream could be sent only once
  for (let refusals = 0; ; refusals++) {
    const again = new Request(url, { method, headers, signal, keepalive, body });
    const response = await (site === undefined ? fetch(again) : ask(again));
    const wait = response.headers.get('Retry-After');
    if ((response.status !== 503 && response.status !== 429) || wait === null || refusals === mostRefusals) return response;
    await pause(Math.max(0.1, Number(wait)), signal);
  }
}

function pause(seconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason as Error);
    });
  });
}

/** listen opens a stream of server-sent events. */
export function listen(path: string): EventSource {
  return new EventSource(path);
}

export interface Uploaded {
  status: number;
  body: unknown;
}

/** upload sends a file and tells how much of it is there, which fetch cannot. It rejects with the signal's reason, or if there is no answer. */
export function upload(path: string, file: File, signal: AbortSignal, onSent: (bytes: number) => void): Promise<Uploaded> {
  return site === undefined ? uploadToServer(path, file, signal, onSent) : readHere(path, file, signal, onSent);
}

async function readHere(path: string, file: File, signal: AbortSignal, onSent: (bytes: number) => void): Promise<Uploaded> {
  onSent(file.size);
  const { status, body } = await tell('POST', path, file, signal);
  return { status, body: JSON.parse(new TextDecoder().decode(body)) };
}

function uploadToServer(path: string, file: File, signal: AbortSignal, onSent: (bytes: number) => void): Promise<Uploaded> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    signal.addEventListener('abort', () => request.abort());
    request.open('POST', path);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.responseType = 'json';
    request.upload.addEventListener('progress', ({ loaded }) => onSent(loaded));
    request.addEventListener('abort', () => reject(signal.reason as Error));
    request.addEventListener('error', () => reject(new TypeError('no answer')));
    request.addEventListener('load', () => resolve({ status: request.status, body: request.response ?? undefined }));
    request.send(file);
  });
}
