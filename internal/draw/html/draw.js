// Drawing: from data, a view and a selection to pixels. Nothing here changes any of them.

const margin = { left: 84, right: 10, top: 34, axes: 46, lane: 17 };

// frameOf returns where in a canvas the plot lies.
function frameOf(tl, canvas) {
  const lanes = tl.spans.reduce((most, s) => Math.max(most, s.depth + 1), 0);
  const x0 = margin.left, x1 = canvas.clientWidth - margin.right;
  const y0 = margin.top, y1 = canvas.clientHeight - margin.axes - lanes * margin.lane;
  return { x0, x1, y0, y1, lanes, width: Math.max(1, Math.floor(x1 - x0)), height: y1 - y0 };
}

function scales(frame, view) {
  return {
    x: (column) => frame.x0 + (column - view.x0) / (view.x1 - view.x0) * frame.width,
    y: (bytes) => frame.y1 - (bytes - view.y0) / (view.y1 - view.y0) * frame.height,
    column: (x) => view.x0 + (x - frame.x0) / frame.width * (view.x1 - view.x0),
    bytes: (y) => view.y0 + (frame.y1 - y) / frame.height * (view.y1 - view.y0),
  };
}

// context prepares a canvas for its size on this screen.
function context(canvas) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  const ctx = canvas.getContext("2d");
  ctx.scale(ratio, ratio);
  ctx.font = "12px " + getComputedStyle(document.body).fontFamily;
  return ctx;
}

function drawPlot(canvas, tl, theme, state) {
  const ctx = context(canvas), frame = frameOf(tl, canvas), to = scales(frame, state.view);
  const d = { ctx, tl, theme, state, frame, to, view: state.view, pixels: sample(tl, state.view, frame.width) };
  drawGrid(d);
  ctx.save();
  ctx.beginPath();
  ctx.rect(frame.x0, frame.y0, frame.width, frame.height);
  ctx.clip();
  drawBands(d);
  drawShapes(d);
  drawLine(d, tl.allocated, theme.allocated);
  drawLine(d, tl.reserved, theme.reserved);
  ctx.restore();
  drawSpans(d);
  drawAxes(d);
  drawMarks(d);
  return d;
}

function drawGrid({ ctx, theme, frame, to, view }) {
  const range = view.y1 - view.y0;
  const [name, unit] = units.find(([, size]) => view.y1 >= size) || ["B", 1];
  const step = roundStep(range / unit, Math.max(2, frame.height / 70)) * unit;
  ctx.textAlign = "right";
  for (let b = Math.ceil(view.y0 / step) * step; b <= view.y1; b += step) {
    const y = Math.round(to.y(b)) + 0.5;
    ctx.fillStyle = theme.grid;
    ctx.fillRect(frame.x0, y, frame.width, 1);
    ctx.fillStyle = theme.muted;
    ctx.fillText(b === 0 ? "0" : Number((b / unit).toFixed(3)) + " " + name, frame.x0 - 8, y + 4);
  }
}

// drawBands fills between the bottom and the top of each band, pixel by pixel.
function drawBands({ ctx, tl, theme, frame, to, pixels, state }) {
  for (const band of tl.bands) {
    ctx.fillStyle = theme.groups[band.group];
    ctx.globalAlpha = state.found ? 0.15 : 0.8;
    ctx.beginPath();
    for (let p = 0; p < pixels.width; p++) {
      const c = pixels.columns[p], top = to.y(band.top[c]);
      if (band.top[c] > band.bottom[c]) ctx.rect(frame.x0 + p, top, 1, to.y(band.bottom[c]) - top);
    }
    ctx.fill();
  }
  ctx.globalAlpha = 1;
}

function drawShapes(d) {
  const { ctx, tl, theme, state, to } = d;
  const least = 0.15 / (to.y(0) - to.y(1)); // bytes too thin to see
  for (const s of tl.shapes) {
    if (s.size < least) continue;
    ctx.fillStyle = theme.shades[s.group][(s.id + 2) % 3];
    ctx.globalAlpha = state.found && !state.found.has(s) ? 0.15 : 1;
    fillShape(d, s);
  }
  ctx.globalAlpha = 1;
  const chosen = state.pinned || state.hovered;
  if (chosen && chosen.columns) {
    ctx.fillStyle = theme.text;
    fillShape(d, chosen);
  }
}

function fillShape({ ctx, frame, to, view, pixels }, s) {
  for (let i = 0; i < s.offsets.length; i++) {
    const from = pixels.before[s.columns[i]], end = pixels.before[s.columns[i + 1]];
    const bottom = s.offsets[i];
    if (from >= end || bottom > view.y1 || bottom + s.size < view.y0) continue;
    const top = to.y(bottom + s.size);
    ctx.fillRect(frame.x0 + from, top, end - from, to.y(bottom) - top);
  }
}

// drawLine draws the highest value under each pixel.
function drawLine({ ctx, tl, frame, to, pixels }, values, color) {
  if (!values) return;
  ctx.strokeStyle = color;
  ctx.lineWidth = 1.2;
  ctx.beginPath();
  for (let p = 0; p < pixels.width; p++) {
    let most = values[pixels.starts[p]];
    for (let c = pixels.starts[p] + 1; c < pixels.starts[p + 1]; c++) most = Math.max(most, values[c]);
    ctx.lineTo(frame.x0 + p, to.y(most));
    ctx.lineTo(frame.x0 + p + 1, to.y(most));
  }
  ctx.stroke();
}

function drawSpans({ ctx, tl, theme, frame, to }) {
  ctx.textAlign = "left";
  for (const s of tl.spans) {
    const x0 = Math.max(frame.x0, to.x(columnOf(tl, s.from)));
    const x1 = Math.min(frame.x1, Math.max(to.x(columnOf(tl, s.to)) - 1, x0 + 1));
    if (x1 <= x0) continue;
    const y = frame.y1 + 3 + s.depth * margin.lane;
    ctx.fillStyle = theme.phases[tl.phaseNames.indexOf(s.name) % theme.phases.length];
    ctx.fillRect(x0, y, x1 - x0, margin.lane - 4);
    const label = s.name.slice(s.name.lastIndexOf("#") + 1);
    ctx.fillStyle = theme.text;
    if (ctx.measureText(label).width < x1 - x0 - 8) ctx.fillText(label, x0 + 4, y + 10);
  }
}

function drawAxes(d) {
  const { tl, frame, to, view } = d;
  const first = Math.max(tl.from, eventOf(tl, view.x0)), last = Math.min(tl.to, eventOf(tl, view.x1));
  const y = frame.y1 + frame.lanes * margin.lane + 1;
  const step = Math.max(1, Math.round(roundStep(Math.max(1, last - first), Math.max(1, frame.width / 110))));
  drawAxis(d, y, "event");
  for (let e = Math.ceil(first / step) * step; e < last; e += step) drawTick(d, to.x(columnOf(tl, e)), y, formatCount(e));
  const ticks = timeTicks(tl, view, 90 / frame.width * (view.x1 - view.x0));
  if (ticks.length) drawAxis(d, y + 23, "time");
  for (const t of ticks) drawTick(d, to.x(t.column), y + 23, formatTime(t.time));
}

function drawAxis({ ctx, theme, frame }, y, name) {
  ctx.fillStyle = theme.grid;
  ctx.fillRect(frame.x0, y, frame.width, 1);
  ctx.fillStyle = theme.muted;
  ctx.textAlign = "right";
  ctx.fillText(name, frame.x0 - 8, y + 15);
}

function drawTick({ ctx, theme, frame }, x, y, label) {
  if (x < frame.x0 || x > frame.x1) return;
  const half = ctx.measureText(label).width / 2;
  ctx.fillStyle = theme.muted;
  ctx.fillRect(Math.round(x), y, 1, 4);
  ctx.textAlign = "center";
  ctx.fillText(label, Math.min(Math.max(x, frame.x0 + half), frame.x1 - half), y + 15);
}

function drawMarks(d) {
  const { tl, theme } = d;
  for (const f of tl.failures) {
    drawMark(d, columnOf(tl, f.event), theme.failure, "out of memory: " + formatBytes(f.size) + " asked for", 12, 0);
  }
  if (!tl.peak.bytes) return;
  const event = tl.peak.event < 0 ? "before the first event" : "event " + formatCount(tl.peak.event);
  drawMark(d, tl.peak.column + 0.5, theme.peak, "peak " + formatBytes(tl.peak.bytes) + " · " + event, 28, tl.peak.bytes);
}

// drawMark draws a vertical line with a label that stays within the plot, and a dot at an amount.
function drawMark({ ctx, frame, to, view }, column, color, label, y, bytes) {
  if (column < view.x0 || column > view.x1) return;
  const x = to.x(column), half = ctx.measureText(label).width / 2;
  ctx.fillStyle = color;
  ctx.textAlign = "center";
  ctx.fillText(label, Math.min(Math.max(x, frame.x0 + half), frame.x1 - half), y);
  ctx.globalAlpha = 0.6;
  ctx.fillRect(x, y + 4, 1, frame.y1 - y - 4);
  ctx.globalAlpha = 1;
  if (bytes > view.y0 && bytes < view.y1) {
    ctx.beginPath();
    ctx.arc(x, to.y(bytes), 4, 0, 2 * Math.PI);
    ctx.fill();
  }
}

// drawOverview draws all of the timeline small, with the view as a window in it.
function drawOverview(canvas, tl, theme, view) {
  const ctx = context(canvas), width = Math.floor(canvas.clientWidth - margin.left - margin.right), height = canvas.clientHeight;
  const pixels = sample(tl, { x0: 0, x1: tl.columns }, width);
  ctx.fillStyle = theme.muted;
  ctx.globalAlpha = 0.5;
  for (let p = 0; p < width; p++) {
    const h = tl.active[pixels.columns[p]] / tl.most * height;
    ctx.fillRect(margin.left + p, height - h, 1, h);
  }
  ctx.globalAlpha = 1;
  const x0 = margin.left + view.x0 / tl.columns * width, x1 = margin.left + view.x1 / tl.columns * width;
  ctx.strokeStyle = theme.peak;
  ctx.strokeRect(x0 + 0.5, 0.5, Math.max(2, x1 - x0 - 1), height - 1);
}
