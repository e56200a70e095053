/**
 * Drawing of the plot on the page's own thread: the last picture of the worker, moved to where the view is
 * now, and over it lines, axes, phases and marks. Nothing here changes what it draws.
 */

import { css, type RGB, type Theme } from './colors';
import { columnAt, highest, placeOf, type Span, type Summary } from './data';
import type { Shot } from './drawer';
import { formatBytes, formatMicros, formatMoment } from './format';
import { byteTicks, eventTicks, timeTicks } from './ticks';
import type { Range } from './range';
import { type Frame, type Scale, scale, type View } from './view';

/** Ink is the colours of what is drawn over the picture. */
interface Ink {
  grid: string;
  muted: string;
  text: string;
  plate: string; // behind a label
  peak: string;
  allocated: string;
  reserved: string;
  failure: string;
  cursor: string;
  other: string;
  phases: RGB[];
}

const inks: Record<Theme, Ink> = {
  dark: {
    grid: '#1d211f',
    muted: '#a3ada8',
    text: '#e9eeeb',
    plate: '#0a0a0ae0',
    peak: '#00ff88',
    allocated: '#7fd8ff',
    reserved: '#f0f0f0',
    failure: '#ff6b6b',
    cursor: '#ffffff',
    other: '#ffb020',
    phases: [0x27684a, 0x2f558f, 0x6a4588, 0x7d5c2b, 0x2b6b73, 0x7a3f52],
  },
  light: {
    grid: '#e3e9e6',
    muted: '#48534e',
    text: '#101614',
    plate: '#f6f8f7e0',
    peak: '#00703f',
    allocated: '#0077b6',
    reserved: '#202020',
    failure: '#b42323',
    cursor: '#101614',
    other: '#a05a00',
    phases: [0xa6dcc0, 0xb3cdf2, 0xd8bdeb, 0xedd3a4, 0xa9dfe3, 0xefc0cd],
  },
};

export function inkOf(theme: Theme): Ink {
  return inks[theme];
}

/** Overlay is another recording's active memory, laid over this one. */
export interface Overlay {
  summary: Summary;
  shift: number; // moments to the right
}

/** Drawing is all that a frame shows. */
export interface Drawing {
  view: View;
  whole: Summary; // all of the recording
  fine: Summary; // the same or a part of it, finer
  shot: Shot | null;
  theme: Theme;
  cursor: number | null; // place on the x axis
  found: number[]; // places on the x axis that a search found
  overlay: Overlay | null;
  difference: number | null; // place at which the overlay begins to differ
  range: Range | null; // selected
}

const font = '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
const lane = 16;

/** frameIn says where in a canvas of a size the plot lies; small screens get less of a margin. */
export function frameIn(width: number, height: number, whole: Summary): Frame {
  const left = width < 560 ? 58 : 72;
  const bottom = (whole.lines.elapsed ? 40 : 22) + lanesOf(whole) * lane + 4;
  return { left, top: 30, width: Math.max(1, Math.floor(width - left - 10)), height: Math.max(1, Math.floor(height - 30 - bottom)) };
}

function lanesOf(whole: Summary): number {
  return whole.spans.reduce((most, s) => Math.max(most, s.depth + 1), 0);
}

interface Pen {
  ctx: CanvasRenderingContext2D;
  ink: Ink;
  frame: Frame;
  to: Scale;
  d: Drawing;
}

/** drawPlot draws on a context whose unit is a CSS pixel. */
export function drawPlot(ctx: CanvasRenderingContext2D, frame: Frame, d: Drawing) {
  const pen: Pen = { ctx, ink: inkOf(d.theme), frame, to: scale(frame, d.view), d };
  ctx.font = font;
  drawGrid(pen);
  ctx.save();
  ctx.beginPath();
  ctx.rect(frame.left, frame.top, frame.width, frame.height);
  ctx.clip();
  drawShot(pen);
  drawLine(pen, d.fine, d.fine.lines.allocated, pen.ink.allocated);
  drawLine(pen, d.fine, d.fine.lines.reserved, pen.ink.reserved);
  drawLimit(pen);
  if (d.overlay) drawOverlay(pen, d.overlay);
  if (d.range) drawRange(pen, d.range);
  drawFound(pen);
  ctx.restore();
  drawSpans(pen);
  drawAxes(pen);
  drawMarks(pen);
}

/** drawShot puts the picture where what it shows lies now: between two pictures it is moved and stretched. */
function drawShot({ ctx, to, d }: Pen) {
  if (!d.shot) return;
  const { bitmap, view } = d.shot;
  const x = to.x(view.x0);
  const y = to.y(view.y1);
  ctx.imageSmoothingEnabled = false;
  ctx.drawImage(bitmap, x, y, to.x(view.x1) - x, to.y(view.y0) - y);
}

function drawGrid({ ctx, ink, frame, to, d }: Pen) {
  ctx.textAlign = 'right';
  for (const { at, label } of byteTicks(d.view.y0, d.view.y1, Math.max(2, frame.height / 64))) {
    const y = Math.round(to.y(at));
    ctx.fillStyle = ink.grid;
    ctx.fillRect(frame.left, y, frame.width, 1);
    ctx.fillStyle = ink.muted;
    ctx.fillText(label, frame.left - 8, y + 4);
  }
}

/** drawLine draws the highest value under each pixel, as steps. */
function drawLine({ ctx, frame, d }: Pen, s: Summary, values: Float64Array | null, color: string, shift = 0) {
  if (!values) return;
  const to = scale(frame, d.view);
  const perPixel = (d.view.x1 - d.view.x0) / frame.width;
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.25;
  ctx.beginPath();
  let last = NaN; // height of the line so far; stretches of one height are one stroke
  for (let p = 0; p < frame.width; p++) {
    const start = Math.floor(columnAt(s, d.view.x0 - shift + p * perPixel));
    const end = Math.max(start + 1, Math.floor(columnAt(s, d.view.x0 - shift + (p + 1) * perPixel)));
    const known = start >= 0 && start < s.lines.columns;
    const y = known ? Math.round(2 * to.y(highest(values, start, Math.min(end, s.lines.columns)))) / 2 : NaN;
    if (y === last) continue;
    if (!Number.isNaN(last)) ctx.lineTo(frame.left + p, last);
    if (known && Number.isNaN(last)) ctx.moveTo(frame.left + p, y);
    else if (known) ctx.lineTo(frame.left + p, y);
    last = y;
  }
  if (!Number.isNaN(last)) ctx.lineTo(frame.left + frame.width, last);
  ctx.stroke();
}

/** drawLimit marks what PyTorch might take. Of a run that ran out this is at least the most that it ever reserved. */
function drawLimit({ ctx, ink, frame, to, d }: Pen) {
  const { failures, lines } = d.whole;
  if (failures.length === 0 || !lines.reserved) return;
  const bytes = highest(lines.reserved);
  const y = Math.round(to.y(bytes)) - 1.5;
  ctx.strokeStyle = ctx.fillStyle = ink.failure;
  ctx.lineWidth = 1;
  ctx.setLineDash([6, 3]);
  ctx.beginPath();
  ctx.moveTo(frame.left, y);
  ctx.lineTo(frame.left + frame.width, y);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.textAlign = 'left';
  ctx.fillText(`limit, at least ${formatBytes(bytes)}`, frame.left + 4, y + 13);
}

function drawOverlay(pen: Pen, { summary, shift }: Overlay) {
  drawLine(pen, summary, summary.lines.active, pen.ink.plate, shift);
  drawLine(pen, summary, summary.lines.active, pen.ink.other, shift);
}

/** drawRange dims what is outside of a range. */
function drawRange({ ctx, ink, frame, to }: Pen, { from, to: end }: Range) {
  const [x0, x1] = [to.x(from + 1), to.x(end + 1)].map((x) => Math.min(Math.max(x, frame.left), frame.left + frame.width));
  ctx.fillStyle = ink.plate;
  ctx.globalAlpha = 0.6;
  ctx.fillRect(frame.left, frame.top, x0! - frame.left, frame.height);
  ctx.fillRect(x1!, frame.top, frame.left + frame.width - x1!, frame.height);
  ctx.globalAlpha = 1;
  ctx.fillStyle = ink.cursor;
  for (const x of [x0!, x1!]) ctx.fillRect(Math.round(x), frame.top, 1, frame.height);
}

/** drawFound marks where what a search found begins; many in one pixel are one. */
function drawFound({ ctx, ink, frame, to, d }: Pen) {
  ctx.fillStyle = ink.peak;
  let last = -1;
  for (const place of d.found) {
    const x = Math.round(to.x(place));
    if (x === last || x < frame.left || x > frame.left + frame.width) continue;
    last = x;
    ctx.fillRect(x, frame.top + frame.height - 6, 1, 6);
  }
}

function drawSpans({ ctx, ink, frame, to, d }: Pen) {
  ctx.textAlign = 'left';
  const names = [...new Set(d.whole.spans.map((s) => s.name))];
  for (const span of d.fine.spans) {
    const x0 = Math.max(frame.left, to.x(span.from + 1));
    const x1 = Math.min(frame.left + frame.width, Math.max(to.x(span.to + 1) - 1, x0 + 1));
    if (x1 <= x0) continue;
    const y = frame.top + frame.height + 4 + span.depth * lane;
    ctx.fillStyle = css(ink.phases[Math.max(0, names.indexOf(span.name)) % ink.phases.length]!);
    ctx.fillRect(x0, y, x1 - x0, lane - 3);
    const label = spanLabel(span);
    ctx.fillStyle = ink.text;
    if (ctx.measureText(label).width < x1 - x0 - 8) ctx.fillText(label, x0 + 4, y + 10);
  }
}

/** spanLabel is the short form of a name: PyTorch puts the kind before a "#". */
function spanLabel(span: Span): string {
  return span.name.slice(span.name.lastIndexOf('#') + 1);
}

function drawAxes(pen: Pen) {
  const { frame, to, d } = pen;
  const y = frame.top + frame.height + lanesOf(d.whole) * lane + 4;
  drawAxis(pen, y, 'event');
  for (const { at, label } of eventTicks(d.view.x0, d.view.x1, Math.max(1, frame.width / 110))) drawTick(pen, to.x(at), y, label);
  const { elapsed, columns } = d.fine.lines;
  if (!elapsed) return;
  const first = Math.min(Math.max(0, Math.floor(columnAt(d.fine, d.view.x0))), columns);
  const last = Math.min(Math.max(0, Math.ceil(columnAt(d.fine, d.view.x1))), columns);
  const gap = (96 / frame.width) * (columnAt(d.fine, d.view.x1) - columnAt(d.fine, d.view.x0));
  drawAxis(pen, y + 19, 'time');
  for (const { column, micros } of timeTicks(elapsed, first, last, gap)) {
    drawTick(pen, to.x(placeOf(d.fine, column)), y + 19, formatMicros(micros));
  }
}

function drawAxis({ ctx, ink, frame }: Pen, y: number, name: string) {
  ctx.fillStyle = ink.grid;
  ctx.fillRect(frame.left, y, frame.width, 1);
  ctx.fillStyle = ink.muted;
  ctx.textAlign = 'right';
  ctx.fillText(name, frame.left - 8, y + 14);
}

function drawTick({ ctx, ink, frame }: Pen, x: number, y: number, label: string) {
  const right = frame.left + frame.width;
  if (x < frame.left || x > right) return;
  const half = ctx.measureText(label).width / 2;
  ctx.fillStyle = ink.muted;
  ctx.fillRect(Math.round(x), y, 1, 4);
  ctx.textAlign = 'center';
  ctx.fillText(label, Math.min(Math.max(x, frame.left + half), right - half), y + 14);
}

function drawMarks(pen: Pen) {
  const { ink, d } = pen;
  for (const f of d.fine.failures.slice(0, 50)) drawMark(pen, f.event + 1, ink.failure, `out of memory: ${formatBytes(f.size)} requested`, 11, 0);
  const { peak } = d.whole;
  if (peak.bytes) drawMark(pen, peak.event + 1.5, ink.peak, `peak ${formatBytes(peak.bytes)} · ${formatMoment(peak.event)}`, 25, peak.bytes);
  if (d.difference !== null) drawMark(pen, d.difference, ink.other, 'first difference', 25, 0);
  if (d.cursor !== null) drawCursor(pen, d.cursor);
}

/** drawMark draws a vertical line with a label that stays within the plot, and a dot at an amount. */
function drawMark({ ctx, ink, frame, to, d }: Pen, place: number, color: string, label: string, y: number, bytes: number) {
  if (place < d.view.x0 || place > d.view.x1) return;
  const x = to.x(place);
  const half = ctx.measureText(label).width / 2;
  const middle = Math.min(Math.max(x, frame.left + half), frame.left + frame.width - half);
  ctx.fillStyle = ink.plate;
  ctx.fillRect(middle - half - 4, y - 10, 2 * half + 8, 13);
  ctx.fillStyle = color;
  ctx.textAlign = 'center';
  ctx.fillText(label, middle, y);
  ctx.globalAlpha = 0.65;
  ctx.fillRect(Math.round(x), y + 4, 1, frame.top + frame.height - y - 4);
  ctx.globalAlpha = 1;
  if (bytes > d.view.y0 && bytes < d.view.y1) {
    ctx.beginPath();
    ctx.arc(x, to.y(bytes), 3.5, 0, 2 * Math.PI);
    ctx.fill();
  }
}

function drawCursor({ ctx, ink, frame, to, d }: Pen, place: number) {
  if (place < d.view.x0 || place > d.view.x1) return;
  ctx.fillStyle = ink.cursor;
  const x = Math.round(to.x(place));
  ctx.globalAlpha = 0.8;
  ctx.fillRect(x, frame.top, 1, frame.height);
  ctx.globalAlpha = 1;
  ctx.beginPath();
  ctx.moveTo(x - 4, frame.top + frame.height + 5);
  ctx.lineTo(x + 5, frame.top + frame.height + 5);
  ctx.lineTo(x + 0.5, frame.top + frame.height - 1);
  ctx.fill();
}

/** drawBackdrop draws all of the timeline small. It changes only with the data, so it is drawn once and kept. */
export function drawBackdrop(ctx: CanvasRenderingContext2D, frame: Frame, whole: Summary, theme: Theme) {
  const most = Math.max(1, whole.peak.bytes);
  const { active, columns } = whole.lines;
  const perPixel = (whole.events + 1) / frame.width;
  ctx.fillStyle = inkOf(theme).muted;
  ctx.globalAlpha = 0.45;
  for (let p = 0; p < frame.width; p++) {
    const start = Math.floor(columnAt(whole, p * perPixel));
    const end = Math.max(start + 1, Math.floor(columnAt(whole, (p + 1) * perPixel)));
    if (start < 0 || start >= columns) continue; // a page that stands alone may hold a part of the recording only
    const h = (highest(active, start, end) / most) * (frame.height - 4);
    ctx.fillRect(frame.left + p, frame.top + frame.height - h, 1, h);
  }
  ctx.globalAlpha = 1;
}

/** drawOverview draws the marks, and the view as a window. */
export function drawOverview(ctx: CanvasRenderingContext2D, frame: Frame, d: Drawing) {
  const ink = inkOf(d.theme);
  const world = d.whole.events + 1;
  const x = (place: number) => frame.left + (place / world) * frame.width;
  for (const f of d.whole.failures.slice(0, 50)) dot(ctx, x(f.event + 1), frame.top + 3, ink.failure);
  dot(ctx, x(d.whole.peak.event + 1), frame.top + 3, ink.peak);
  if (d.difference !== null) dot(ctx, x(d.difference), frame.top + 3, ink.other);
  if (d.cursor !== null) {
    ctx.fillStyle = ink.cursor;
    ctx.fillRect(Math.round(x(d.cursor)), frame.top, 1, frame.height);
  }
  drawWindow(ctx, frame, ink, x(d.view.x0), x(d.view.x1));
}

function drawWindow(ctx: CanvasRenderingContext2D, frame: Frame, ink: Ink, x0: number, x1: number) {
  const right = frame.left + frame.width;
  ctx.fillStyle = ink.plate;
  ctx.globalAlpha = 0.7;
  ctx.fillRect(frame.left, frame.top, x0 - frame.left, frame.height);
  ctx.fillRect(x1, frame.top, right - x1, frame.height);
  ctx.globalAlpha = 1;
  ctx.strokeStyle = ink.peak;
  ctx.lineWidth = 1;
  ctx.strokeRect(x0 + 0.5, frame.top + 0.5, Math.max(2, x1 - x0 - 1), frame.height - 1);
  ctx.fillStyle = ink.peak;
  for (const x of [x0, x1]) ctx.fillRect(x - 2, frame.top + frame.height / 2 - 9, 4, 18);
}

function dot(ctx: CanvasRenderingContext2D, x: number, y: number, color: string) {
  ctx.fillStyle = color;
  ctx.beginPath();
  ctx.arc(x, y, 2.5, 0, 2 * Math.PI);
  ctx.fill();
}
