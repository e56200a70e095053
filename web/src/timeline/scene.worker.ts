/** The worker around a Scene: it fetches and unpacks timelines, draws them, and answers with bitmaps. */

import { send } from '../api/transport';
import { decode, summary, type Summary, type Wire } from './data';
import { bitmapOf, type Slot } from './drawer';
import { Scene, type Look, type Under } from './scene';
import type { View } from './view';

export type ToWorker =
  | { kind: 'load'; slot: Slot; url: string; serial: number }
  | { kind: 'drop window' }
  | { kind: 'look'; look: Look }
  | { kind: 'pick'; look: Look; serial: number }
  | { kind: 'live'; look: Look; x: number; serial: number };

export type FromWorker =
  | { kind: 'loaded'; slot: Slot; serial: number; summary: Summary }
  | { kind: 'failed'; slot: Slot; serial: number; problem: string }
  | { kind: 'picture'; bitmap: ImageBitmap | null; view: View; under: Under | null; found: number }
  | { kind: 'picked'; serial: number; under: Under | null }
  | { kind: 'live'; serial: number; shapes: Under[] };

const scene = new Scene();
const loading = new Map<string, AbortController>();

function post(message: FromWorker, transfer: Transferable[] = []) {
  self.postMessage(message, { transfer });
}

self.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  switch (data.kind) {
    case 'load':
      void load(data);
      break;
    case 'drop window':
      loading.get('window')?.abort();
      scene.setWindow(null);
      break;
    case 'look':
      draw(data.look);
      break;
    case 'pick':
      post({ kind: 'picked', serial: data.serial, under: scene.pick(data.look) });
      break;
    case 'live':
      post({ kind: 'live', serial: data.serial, shapes: scene.liveAt(data.look, data.x) });
      break;
  }
});

/** load replaces what is being loaded for the same slot. */
async function load({ slot, url, serial }: Extract<ToWorker, { kind: 'load' }>) {
  loading.get(slot)?.abort();
  const abort = new AbortController();
  loading.set(slot, abort);
  try {
    const response = await send(new Request(url, { signal: abort.signal }));
    const body: unknown = await response.json();
    if (abort.signal.aborted) return;
    if (!response.ok) throw new Error(problemOf(body, response.status));
    const timeline = decode(body as Wire);
    if (slot === 'whole') scene.setWhole(timeline);
    else scene.setWindow(timeline);
    post({ kind: 'loaded', slot, serial, summary: summary(timeline) });
  } catch (error) {
    if (!abort.signal.aborted) post({ kind: 'failed', slot, serial, problem: error instanceof Error ? error.message : String(error) });
  }
}

/** problemOf reads an RFC 9457 answer. */
function problemOf(body: unknown, status: number): string {
  const { title, detail } = (body ?? {}) as { title?: string; detail?: string };
  return detail ?? title ?? `the server answered ${status}`;
}

function draw(look: Look) {
  const { pixels, under, found } = scene.look(look);
  const bitmap = pixels && bitmapOf(pixels, look.width, look.height);
  post({ kind: 'picture', bitmap, view: look.view, under, found }, bitmap ? [bitmap] : []);
}
