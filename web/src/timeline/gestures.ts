/** How wheel, mouse, pen and fingers move a stage. */

import { drag, type Grip, gripAt } from './brush';
import { type Range, rangeBetween } from './range';
import type { Under } from './scene';
import type { Stage } from './stage';
import { move, type View, zoomX, zoomY } from './view';

/** Done is what a gesture comes to. */
export interface Done {
  click(under: Under | null): void;
  /** a range was drawn, to its end or not yet */
  range?(range: Range, ended: boolean): void;
  /** whether dragging draws a range without Shift */
  drawsRanges?(): boolean;
}

/** listen moves a stage by what is done on its plot and its overview; it returns how to stop that. */
export function listen(stage: Stage, plot: HTMLCanvasElement, overview: HTMLCanvasElement, done: Done): () => void {
  const abort = new AbortController();
  const on = { signal: abort.signal };
  plot.addEventListener('wheel', (event) => wheel(stage, event), { passive: false, ...on });
  plot.addEventListener('pointerleave', () => stage.point(null), on);
  plot.addEventListener('pointermove', (event) => stage.point({ x: event.offsetX, y: event.offsetY }), on);
  new Fingers(stage, plot, done).listen(on);
  overview.addEventListener('pointerdown', (event) => brush(stage, overview, event), on);
  return () => abort.abort();
}

function wheel(stage: Stage, event: WheelEvent) {
  const to = stage.scale();
  if (!to) return;
  event.preventDefault();
  const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (sideways && !event.shiftKey) {
    stage.show(move(stage.world, stage.view, event.deltaX / 600, 0));
    return;
  }
  const turn = Math.max(-60, Math.min(60, event.deltaY || event.deltaX));
  const factor = Math.exp(turn / 150);
  if (event.shiftKey) stage.show(zoomY(stage.world, stage.view, factor, to.bytes(event.offsetY)));
  else stage.show(zoomX(stage.world, stage.view, factor, to.place(event.offsetX)));
}

/** Fingers drags with one pointer and pinches with two. */
class Fingers {
  private readonly down = new Map<number, { x: number; y: number }>();
  private travelled = 0;
  private drawnFrom: number | null = null; // a place on the x axis, while a range is drawn

  constructor(
    private readonly stage: Stage,
    private readonly plot: HTMLCanvasElement,
    private readonly done: Done,
  ) {}

  listen(on: { signal: AbortSignal }) {
    this.plot.addEventListener('pointerdown', (event) => this.press(event), on);
    this.plot.addEventListener('pointermove', (event) => this.move(event), on);
    this.plot.addEventListener('pointerup', (event) => this.lift(event), on);
    this.plot.addEventListener('pointercancel', (event) => this.down.delete(event.pointerId), on);
  }

  private press(event: PointerEvent) {
    if (event.button !== 0) return;
    this.plot.setPointerCapture(event.pointerId);
    if (this.down.size === 0) {
      this.travelled = 0;
      const draws = this.done.range && (event.shiftKey || this.done.drawsRanges?.());
      this.drawnFrom = draws ? (this.stage.scale()?.place(event.offsetX) ?? null) : null;
    }
    this.down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.stage.point({ x: event.offsetX, y: event.offsetY });
  }

  private move(event: PointerEvent) {
    const last = this.down.get(event.pointerId);
    const frame = this.stage.frame();
    if (!last || !frame) return;
    const now = { x: event.offsetX, y: event.offsetY };
    this.travelled += Math.hypot(now.x - last.x, now.y - last.y);
    if (this.down.size === 2) this.pinch(event.pointerId, last, now);
    else if (this.drawnFrom !== null) {
      if (this.travelled > slack(event)) this.draw(event, false);
    } else if (this.travelled > slack(event)) {
      this.stage.show(move(this.stage.world, this.stage.view, (last.x - now.x) / frame.width, (now.y - last.y) / frame.height));
    }
    this.down.set(event.pointerId, now);
  }

  private pinch(moving: number, last: { x: number; y: number }, now: { x: number; y: number }) {
    const other = [...this.down].find(([id]) => id !== moving)?.[1];
    const to = this.stage.scale();
    const frame = this.stage.frame();
    if (!other || !to || !frame) return;
    const factor = Math.max(12, Math.abs(last.x - other.x)) / Math.max(12, Math.abs(now.x - other.x));
    this.stage.show(zoomX(this.stage.world, this.stage.view, factor, to.place(other.x)));
  }

  private draw(event: PointerEvent, ended: boolean) {
    const to = this.stage.scale();
    const { whole } = this.stage.state;
    if (to && whole && this.drawnFrom !== null) this.done.range?.(rangeBetween(this.drawnFrom, to.place(event.offsetX), whole.events), ended);
  }

  private lift(event: PointerEvent) {
    const clicked = this.down.size === 1 && this.travelled <= slack(event);
    this.down.delete(event.pointerId);
    if (!clicked && this.drawnFrom !== null) this.draw(event, true);
    this.drawnFrom = null;
    if (!clicked) return;
    const to = this.stage.scale();
    if (to) this.stage.setCursor(Math.floor(to.place(event.offsetX)) - 1);
    void this.stage.pick({ x: event.offsetX, y: event.offsetY }).then((under) => this.done.click(under));
  }
}

/** slack is how many pixels a press may move and still be a click: a finger rolls. */
function slack({ pointerType }: PointerEvent): number {
  return pointerType === 'mouse' ? 4 : 12;
}

/** brush moves the window of the overview, by its ends, by its middle, or draws it again; a click centres it. */
function brush(stage: Stage, overview: HTMLCanvasElement, down: PointerEvent) {
  const frame = stage.overviewFrame();
  if (!frame || down.button !== 0) return;
  overview.setPointerCapture(down.pointerId);
  const place = (x: number) => ((x - frame.left) / frame.width) * stage.world.x;
  const pixel = (at: number) => frame.left + (at / stage.world.x) * frame.width;
  const before: View = stage.view;
  const grip: Grip = gripAt(down.offsetX, pixel(before.x0), pixel(before.x1), down.pointerType === 'touch' ? 16 : 6);
  let moved = false;
  const abort = new AbortController();
  const on = { signal: abort.signal };
  overview.addEventListener(
    'pointermove',
    (event) => {
      moved ||= Math.abs(event.offsetX - down.offsetX) > 3;
      if (moved) stage.show(drag(stage.world, before, grip, place(down.offsetX), place(event.offsetX)));
    },
    on,
  );
  overview.addEventListener(
    'pointerup',
    (event) => {
      abort.abort();
      if (!moved) stage.goTo(Math.round(place(event.offsetX)) - 1);
    },
    on,
  );
  overview.addEventListener('pointercancel', () => abort.abort(), on);
}
