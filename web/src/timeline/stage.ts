/**
 * Stage holds what the plot shows and moves it: the view, the data at hand, the cursor, what stands out.
 * Moving it draws a frame; it renders no component. Components listen for what they show.
 */

import type { Theme } from './colors';
import { highest, type Summary } from './data';
import type { Drawer, DrawerEvents } from './drawer';
import { drawBackdrop, drawOverview, drawPlot, frameIn, type Drawing, type Overlay } from './plot';
import type { Range } from './range';
import type { Look, Under } from './scene';
import { around, between, type Frame, same, scale, type Scale, type View, whole, within, type World } from './view';
import { covers, sameWindow, type Window, windowFor, wholeWindow } from './window';

/** Source says where the stage gets a window of a timeline from. */
export type Source = (window: Window) => string;

/** StageState is what components show of a stage; it is replaced, never changed. */
export interface StageState {
  whole: Summary | null;
  problem: string;
  hovered: Under | null;
  pointer: { x: number; y: number; width: number } | null; // where it was when that was found, in CSS pixels of a plot so wide
  found: number; // of what is drawn one by one, -1 without a search
  cursor: number | null; // an event, -1 for before the first
  rested: View | null; // the view, once it does not move; null as long as all is seen
  drawn: number; // allocations drawn one by one
  present: number; // allocations that there are in the same window
}

/** Moment is where one looks: a part of the view may be left open. */
export interface Moment {
  view: Partial<View> | null;
  cursor: number | null;
}

const restMillis = 120; // a view that did not move for so long is worth a finer window
const glideMillis = 180;

export class Stage {
  state: StageState = { whole: null, problem: '', hovered: null, pointer: null, found: -1, cursor: null, rested: null, drawn: 0, present: 0 };
  view: View = { x0: 0, x1: 1, y0: 0, y1: 1 };
  world: World = { x: 1, y: 1 };

  private drawer: Drawer | null = null;
  private readonly listeners = new Set<() => void>();
  private plot: HTMLCanvasElement | null = null;
  private overview: HTMLCanvasElement | null = null;
  private source: Source = () => '';
  private wanted: Window | null = null;
  private fine: Summary | null = null;
  private theme: Theme = 'dark';
  private emphasis = { query: '', atAddress: [] as number[], selected: -1, group: -1 };
  private marks = { found: [] as number[], overlay: null as Overlay | null, difference: null as number | null, range: null as Range | null };
  private pointer: { x: number; y: number } | null = null;
  private backdrop: { canvas: HTMLCanvasElement; whole: Summary; theme: Theme } | null = null;
  private frameRequest = 0;
  private pointRequest = 0;
  private restTimer = 0;
  private begin: Moment | null = null;
  private readonly calm = matchMedia('(prefers-reduced-motion: reduce)');

  /** start makes the stage draw; it can be closed and started again. */
  start(drawerFor: (on: DrawerEvents) => Drawer) {
    this.drawer = drawerFor({
      shot: () => this.invalidate(),
      under: (hovered, found) => {
        if (keyOf(hovered) !== keyOf(this.state.hovered) || found !== this.state.found)
          this.set({ hovered, found, pointer: this.pointer && { ...this.pointer, width: this.plot?.clientWidth ?? 0 } });
      },
      loaded: (slot, summary) => this.loaded(slot, summary),
      failed: (slot, problem) => {
        if (slot === 'whole') this.set({ problem });
      },
    });
  }

  close() {
    cancelAnimationFrame(this.frameRequest);
    clearTimeout(this.restTimer);
    cancelAnimationFrame(this.pointRequest);
    this.frameRequest = this.pointRequest = 0;
    this.drawer?.close();
    this.drawer = null;
  }

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  private set(change: Partial<StageState>) {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }

  attach(plot: HTMLCanvasElement, overview: HTMLCanvasElement) {
    this.plot = plot;
    this.overview = overview;
    const observer = new ResizeObserver(() => this.invalidate());
    observer.observe(plot);
    return () => {
      observer.disconnect();
      this.plot = this.overview = null;
    };
  }

  /** beginAt says what the first timeline is shown at; without it that is all of it, with the cursor at the peak. */
  beginAt(moment: Moment) {
    this.begin = moment;
  }

  /** open shows a timeline; the view stays if it is of the same recording in other colours or detail. */
  open(source: Source, events: number, keepView: boolean) {
    this.source = source;
    this.wanted = null;
    this.fine = null;
    if (!keepView) this.set({ whole: null, problem: '', cursor: null });
    this.drawer?.dropWindow();
    this.drawer?.load('whole', source(wholeWindow(events, this.pixels())));
  }

  private pixels(): number {
    return Math.round((this.plot?.clientWidth || 1200) * pixelRatio());
  }

  private loaded(slot: 'whole' | 'window', summary: Summary) {
    if (slot === 'window') {
      this.fine = summary;
    } else {
      const first = !this.state.whole;
      this.world = { x: summary.events + 1, y: mostOf(summary, this.marks.overlay) };
      if (first) this.view = within(this.world, { ...whole(this.world), ...this.begin?.view });
      const cursor = this.state.cursor ?? this.begin?.cursor ?? summary.peak.event;
      this.set({ whole: summary, problem: '', cursor: Math.min(Math.max(-1, cursor), summary.events - 1), ...(first && { rested: this.seen() }) });
      this.rest();
    }
    this.count();
    this.invalidate();
  }

  /** seen is the view, null if that is all there is. */
  private seen(): View | null {
    return same(this.view, whole(this.world)) ? null : this.view;
  }

  /** count says how much of what is seen is drawn one by one. */
  private count() {
    const s = this.current();
    if (s) this.set({ drawn: s.shown, present: s.groups.reduce((sum, g) => sum + g.count, 0) });
  }

  setTheme(theme: Theme) {
    this.theme = theme;
    this.invalidate();
  }

  setEmphasis(change: Partial<Stage['emphasis']>) {
    this.emphasis = { ...this.emphasis, ...change };
    this.invalidate();
  }

  setMarks(change: Partial<Stage['marks']>) {
    this.marks = { ...this.marks, ...change };
    const { whole: all } = this.state;
    if (all) {
      const full = this.view.y0 === 0 && this.view.y1 === this.world.y;
      this.world = { ...this.world, y: mostOf(all, this.marks.overlay) };
      this.view = within(this.world, full ? { ...this.view, y1: this.world.y } : this.view);
    }
    this.invalidate();
  }

  /** show moves to a view at once. */
  show(view: View) {
    view = within(this.world, view);
    if (same(view, this.view)) return;
    this.view = view;
    this.rest();
    this.invalidate();
  }

  /** glide moves to a view so that one can follow, unless no motion is wanted. */
  glide(view: View) {
    const from = this.view;
    const to = within(this.world, view);
    if (this.calm.matches) return this.show(to);
    const start = performance.now();
    const step = () => {
      const part = Math.min(1, (performance.now() - start) / glideMillis);
      this.show(between(from, to, part));
      if (part < 1 && same(this.view, within(this.world, between(from, to, part)))) requestAnimationFrame(step);
    };
    step();
  }

  /** fit shows as many bytes as the moments that are seen reach. */
  fit() {
    const s = this.current();
    if (!s) return;
    const { columns, active, reserved, allocated } = s.lines;
    const n = s.to - s.from + 1;
    const first = Math.max(0, Math.floor(((this.view.x0 - s.from) * columns) / n));
    const last = Math.min(columns, Math.ceil(((this.view.x1 - s.from) * columns) / n));
    const most = Math.max(...[active, reserved, allocated].map((line) => highest(line, first, line ? last : 0)));
    this.glide({ ...this.view, y0: 0, y1: most * 1.08 });
  }

  showAll() {
    this.glide(whole(this.world));
  }

  /** goTo puts the cursor on an event and shows it. */
  goTo(event: number, share = 1) {
    this.setCursor(event);
    this.glide(around(this.world, this.view, event + 1, share));
  }

  setCursor(event: number | null) {
    const { whole: all } = this.state;
    if (event !== null && all) event = Math.min(Math.max(-1, Math.round(event)), all.events - 1);
    this.set({ cursor: event });
    this.invalidate();
  }

  /** point says where the pointer is, in CSS pixels of the plot. */
  point(at: { x: number; y: number } | null) {
    this.pointer = at;
    // Nothing has moved: the worker looks what is there, and only if that is something else there is a new picture.
    this.pointRequest ||= requestAnimationFrame(() => {
      this.pointRequest = 0;
      const look = this.look();
      if (look) this.drawer?.look(look);
    });
  }

  /** pick is what is at a place of the plot, in CSS pixels. */
  async pick(at: { x: number; y: number }): Promise<Under | null> {
    const look = this.look(at);
    return look && this.drawer ? this.drawer.pick(look) : null;
  }

  /** liveAtCursor lists the allocations at the cursor, from the top to the bottom. */
  async liveAtCursor(): Promise<Under[]> {
    const look = this.look();
    if (!look || !this.drawer || this.state.cursor === null) return [];
    return this.drawer.liveAt(look, this.state.cursor + 1);
  }

  frame(): Frame | null {
    if (!this.plot || !this.state.whole) return null;
    return frameIn(this.plot.clientWidth, this.plot.clientHeight, this.state.whole);
  }

  overviewFrame(): Frame | null {
    const frame = this.frame();
    return frame && this.overview && { ...frame, top: 0, height: this.overview.clientHeight };
  }

  scale(): Scale | null {
    const frame = this.frame();
    return frame && scale(frame, this.view);
  }

  private current(): Summary | null {
    return this.fine && covers(this.fine, this.view, this.world) ? this.fine : this.state.whole;
  }

  private look(at = this.pointer): Look | null {
    const frame = this.frame();
    if (!frame) return null;
    const ratio = pixelRatio();
    const pointer = at && { x: (at.x - frame.left) * ratio, y: (at.y - frame.top) * ratio };
    return {
      view: this.view,
      world: this.world,
      width: Math.round(frame.width * ratio),
      height: Math.round(frame.height * ratio),
      theme: this.theme,
      ...this.emphasis,
      pointer,
    };
  }

  private rest() {
    clearTimeout(this.restTimer);
    this.restTimer = window.setTimeout(() => {
      this.count();
      this.set({ rested: this.seen() });
      const wanted = windowFor(this.world, this.view, this.pixels());
      if (!wanted || sameWindow(wanted, this.wanted)) return;
      this.wanted = wanted;
      this.drawer?.load('window', this.source(wanted));
    }, restMillis);
  }

  invalidate() {
    this.frameRequest ||= requestAnimationFrame(() => {
      this.frameRequest = 0;
      this.draw();
    });
  }

  private drawOverview(canvas: HTMLCanvasElement, frame: Frame, drawing: Drawing) {
    const { whole: all, theme } = drawing;
    const kept = this.backdrop;
    const ctx = contextOf(canvas);
    if (kept?.whole !== all || kept.theme !== theme || kept.canvas.width !== canvas.width || kept.canvas.height !== canvas.height) {
      const made = document.createElement('canvas');
      made.width = canvas.width;
      made.height = canvas.height;
      const on = made.getContext('2d')!;
      on.scale(pixelRatio(), pixelRatio());
      drawBackdrop(on, frame, all, theme);
      this.backdrop = { canvas: made, whole: all, theme };
    }
    ctx.drawImage(this.backdrop!.canvas, 0, 0, canvas.clientWidth, canvas.clientHeight);
    drawOverview(ctx, frame, drawing);
  }

  private draw() {
    const frame = this.frame();
    const look = this.look();
    const current = this.current();
    if (!this.plot || !this.overview || !frame || !look || !current || !this.drawer || !this.state.whole) return;
    this.drawer.look(look);
    const drawing: Drawing = {
      view: this.view,
      whole: this.state.whole,
      fine: current,
      shot: this.drawer.shot,
      theme: this.theme,
      cursor: this.state.cursor === null ? null : this.state.cursor + 1,
      ...this.marks,
    };
    drawPlot(contextOf(this.plot), frame, drawing);
    this.drawOverview(this.overview, { ...frame, top: 0, height: this.overview.clientHeight }, drawing);
  }
}

/** keyOf tells what is under the pointer from something else there. */
function keyOf(under: Under | null): string {
  return under ? `${under.kind} ${under.group} ${under.kind === 'shape' ? under.id : ''}` : '';
}

/** mostOf is as high as the world is: everything that is drawn, and some space. */
function mostOf(s: Summary, overlay: Overlay | null): number {
  const { active, allocated, reserved } = s.lines;
  return Math.max(512, highest(active), highest(allocated), highest(reserved), overlay?.summary.peak.bytes ?? 0) * 1.06;
}

/** pixelRatio is limited: more than two pixels for one cannot be seen, but must be drawn. */
function pixelRatio(): number {
  return Math.min(devicePixelRatio, 2);
}

/** contextOf clears a canvas and prepares it for its size on this screen. */
function contextOf(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const ratio = pixelRatio();
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  const ctx = canvas.getContext('2d')!;
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return ctx;
}
