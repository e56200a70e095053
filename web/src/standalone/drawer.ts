/** The drawing of a page that stands alone: all of it is there, and one thread does everything. */

import { summary, type Timeline } from '../timeline/data';
import { bitmapOf, type Drawer, type DrawerEvents, type Shot, type Slot } from '../timeline/drawer';
import { type Look, Scene, type Under } from '../timeline/scene';

export class LocalDrawer implements Drawer {
  shot: Shot | null = null;
  private readonly scene = new Scene();

  constructor(
    private readonly timeline: Timeline,
    private readonly on: DrawerEvents,
  ) {}

  /** load shows what is there; there are no finer windows to be had. */
  load(slot: Slot) {
    if (slot === 'window') return;
    this.scene.setWhole(this.timeline);
    this.on.loaded(slot, summary(this.timeline));
  }

  dropWindow() {}

  look(look: Look) {
    const { pixels, under, found } = this.scene.look(look);
    if (pixels) {
      this.close();
      this.shot = { bitmap: bitmapOf(pixels, look.width, look.height), view: look.view };
      this.on.shot();
    }
    this.on.under(under, found);
  }

  async pick(look: Look): Promise<Under | null> {
    return this.scene.pick(look);
  }

  async liveAt(look: Look, x: number): Promise<Under[]> {
    return this.scene.liveAt(look, x);
  }

  close() {
    this.shot?.bitmap.close();
    this.shot = null;
  }
}
