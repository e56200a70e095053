/** What a stage needs of whoever draws for it: a worker on the page, the same thread in a page that stands alone. */

import type { Summary } from './data';
import type { Look, Under } from './scene';
import type { View } from './view';

export interface Shot {
  bitmap: ImageBitmap;
  view: View;
}

export type Slot = 'whole' | 'window';

export interface DrawerEvents {
  shot(): void;
  under(under: Under | null, found: number): void;
  loaded(slot: Slot, summary: Summary): void;
  failed(slot: Slot, problem: string): void;
}

export interface Drawer {
  readonly shot: Shot | null;
  load(slot: Slot, url: string): void;
  dropWindow(): void;
  look(look: Look): void;
  /** pick asks what is at the pointer of a look, for a press that was too short to hover. */
  pick(look: Look): Promise<Under | null>;
  /** liveAt asks what lies on top of each other at a place, from the top to the bottom. */
  liveAt(look: Look, x: number): Promise<Under[]>;
  close(): void;
}

let canvas: OffscreenCanvas | null = null;

/** bitmapOf makes a bitmap of pixels. */
export function bitmapOf(pixels: Uint32Array, width: number, height: number): ImageBitmap {
  if (canvas?.width !== width || canvas.height !== height) canvas = new OffscreenCanvas(width, height);
  const bytes = new Uint8ClampedArray(pixels.buffer as ArrayBuffer);
  canvas.getContext('2d')!.putImageData(new ImageData(bytes, width, height), 0, 0);
  return canvas.transferToImageBitmap();
}
