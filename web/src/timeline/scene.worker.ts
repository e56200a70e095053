/** The worker around a Scene: it unpacks timelines, draws them, and answers with bitmaps. */

import { decode, summary, type Summary, type Wire } from './data';
import { bitmapOf, type Slot } from './drawer';
import { Scene, type Look, type Under } from './scene';
import type { View } from './view';

export type ToWorker =
  | { kind: 'load'; slot: Slot; wire: ArrayBuffer; serial: number }
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

function post(message: FromWorker, transfer: Transferable[] = []) {
  self.postMessage(message, { transfer });
}

self.addEventListener('message', ({ data }: MessageEvent<ToWorker>) => {
  switch (data.kind) {
    case 'load':
      load(data);
      break;
    case 'drop window':
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

function load({ slot, wire, serial }: Extract<ToWorker, { kind: 'load' }>) {
  try {
    const timeline = decode(JSON.parse(new TextDecoder().decode(wire)) as Wire);
    if (slot === 'whole') scene.setWhole(timeline);
    else scene.setWindow(timeline);
    post({ kind: 'loaded', slot, serial, summary: summary(timeline) });
  } catch (error) {
    post({ kind: 'failed', slot, serial, problem: error instanceof Error ? error.message : String(error) });
  }
}

function draw(look: Look) {
  const { pixels, under, found } = scene.look(look);
  const bitmap = pixels && bitmapOf(pixels, look.width, look.height);
  post({ kind: 'picture', bitmap, view: look.view, under, found }, bitmap ? [bitmap] : []);
}
