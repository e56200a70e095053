/**
 * The page's side of the drawing worker, which gets timelines to draw. Looks are sent one at a time; while one is being drawn, only the
 * latest that comes after it is kept, so a slow machine drops frames and never falls behind.
 */

import { Problem, type ProblemDocument } from '../api/problem';
import { send } from '../api/transport';
import type { Drawer, DrawerEvents, Shot, Slot } from './drawer';
import type { Look, Under } from './scene';
import type { FromWorker, ToWorker } from './scene.worker';

export class Renderer implements Drawer {
  shot: Shot | null = null;
  private readonly worker = new Worker(new URL('./scene.worker.ts', import.meta.url), { type: 'module' });
  private busy = false;
  private next: Look | null = null;
  private serial = 0;
  private readonly loading = new Map<Slot, AbortController>();
  private readonly latest = { whole: 0, window: 0 };
  private readonly asked = new Map<number, (shapes: Under[]) => void>();
  private readonly picking = new Map<number, (under: Under | null) => void>();

  constructor(private readonly on: DrawerEvents) {
    this.worker.addEventListener('message', ({ data }: MessageEvent<FromWorker>) => this.receive(data));
    this.worker.addEventListener('error', (event) => on.failed('whole', `the drawing stopped: ${event.message}`));
  }

  close() {
    for (const abort of this.loading.values()) abort.abort();
    this.worker.terminate();
    this.shot?.bitmap.close();
    this.shot = null;
  }

  /** load replaces what is being loaded for the same slot. */
  load(slot: Slot, url: string) {
    const serial = (this.latest[slot] = ++this.serial);
    this.loading.get(slot)?.abort();
    const abort = new AbortController();
    this.loading.set(slot, abort);
    void this.fetch(slot, new Request(url, { signal: abort.signal }), serial);
  }

  private async fetch(slot: Slot, request: Request, serial: number) {
    try {
      const response = await send(request);
      if (!response.ok) throw Problem.from(response.status, (await response.json()) as ProblemDocument);
      const wire = await response.arrayBuffer();
      if (!request.signal.aborted) this.post({ kind: 'load', slot, wire, serial }, [wire]);
    } catch (error) {
      if (!request.signal.aborted) this.on.failed(slot, Problem.of(error).message);
    }
  }

  dropWindow() {
    this.loading.get('window')?.abort();
    this.latest.window = ++this.serial;
    this.post({ kind: 'drop window' });
  }

  look(look: Look) {
    if (this.busy) {
      this.next = look;
      return;
    }
    this.busy = true;
    this.post({ kind: 'look', look });
  }

  pick(look: Look): Promise<Under | null> {
    return new Promise((resolve) => {
      const serial = ++this.serial;
      this.picking.set(serial, resolve);
      this.post({ kind: 'pick', look, serial });
    });
  }

  liveAt(look: Look, x: number): Promise<Under[]> {
    return new Promise((resolve) => {
      const serial = ++this.serial;
      this.asked.set(serial, resolve);
      this.post({ kind: 'live', look, x, serial });
    });
  }

  private post(message: ToWorker, transfer: Transferable[] = []) {
    this.worker.postMessage(message, { transfer });
  }

  private receive(data: FromWorker) {
    switch (data.kind) {
      case 'picture':
        this.show(data);
        break;
      case 'live':
        this.asked.get(data.serial)?.(data.shapes);
        this.asked.delete(data.serial);
        break;
      case 'picked':
        this.picking.get(data.serial)?.(data.under);
        this.picking.delete(data.serial);
        break;
      case 'loaded':
        if (data.serial === this.latest[data.slot]) this.on.loaded(data.slot, data.summary);
        break;
      case 'failed':
        if (data.serial === this.latest[data.slot]) this.on.failed(data.slot, data.problem);
        break;
    }
  }

  private show({ bitmap, view, under, found }: Extract<FromWorker, { kind: 'picture' }>) {
    if (bitmap) {
      this.shot?.bitmap.close();
      this.shot = { bitmap, view };
    }
    this.busy = false;
    const next = this.next;
    this.next = null;
    if (next) this.look(next);
    this.on.under(under, found);
    if (bitmap) this.on.shot();
  }
}
