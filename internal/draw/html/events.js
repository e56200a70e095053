// The page: what the user does changes the state, and the state is drawn.

const tl = decode(JSON.parse(document.getElementById("timeline").textContent));
const theme = JSON.parse(document.getElementById("theme").textContent);
const plot = document.getElementById("plot"), overview = document.getElementById("overview");
const state = { view: wholeView(), found: null, hovered: null, pinned: null };
let drawn = null, waiting = false;

function wholeView() { return { x0: 0, x1: tl.columns, y0: 0, y1: tl.most }; }

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    drawn = drawPlot(plot, tl, theme, state);
    drawOverview(overview, tl, theme, state.view);
  });
}

// show moves to a view, kept within the timeline and not closer than a few columns.
function show(view) {
  const width = Math.min(tl.columns, Math.max(view.x1 - view.x0, Math.min(8, tl.columns)));
  const height = Math.min(tl.most, Math.max(view.y1 - view.y0, 512));
  const x0 = Math.min(Math.max(0, view.x0), tl.columns - width);
  const y0 = Math.min(Math.max(0, view.y0), tl.most - height);
  state.view = { x0, x1: x0 + width, y0, y1: y0 + height };
  redraw();
}

function zoomX(factor, at = (state.view.x0 + state.view.x1) / 2) {
  const v = state.view;
  show({ ...v, x0: at - (at - v.x0) * factor, x1: at + (v.x1 - at) * factor });
}

function zoomY(factor, at = state.view.y0) {
  const v = state.view;
  show({ ...v, y0: at - (at - v.y0) * factor, y1: at + (v.y1 - at) * factor });
}

function move(dx, dy) {
  const v = state.view, x = dx * (v.x1 - v.x0), y = dy * (v.y1 - v.y0);
  show({ x0: v.x0 + x, x1: v.x1 + x, y0: v.y0 + y, y1: v.y1 + y });
}

function showPeak() {
  const half = Math.min(state.view.x1 - state.view.x0, tl.columns / 8) / 2;
  show({ x0: tl.peak.column - half, x1: tl.peak.column + half, y0: 0, y1: tl.most });
}

// under returns the shape that the pointer is on.
function under(event) {
  if (!drawn) return null;
  const pixel = Math.floor(event.offsetX - drawn.frame.x0);
  if (pixel < 0 || pixel >= drawn.pixels.width || event.offsetY > drawn.frame.y1) return null;
  return shapeAt(tl, drawn.pixels.columns[pixel], drawn.to.bytes(event.offsetY));
}

function hover(event) {
  const shape = under(event);
  if (shape === state.hovered) return;
  state.hovered = shape;
  if (!state.pinned) describe(shape);
  redraw();
}

function pin(shape) {
  state.pinned = shape === state.pinned ? null : shape;
  describe(state.pinned || state.hovered);
  redraw();
}

// dragging calls moved with pixels while a button is down, and clicked if there was no move.
function dragging(element, moved, clicked) {
  element.addEventListener("pointerdown", (down) => {
    element.setPointerCapture(down.pointerId);
    let x = down.clientX, y = down.clientY, far = false;
    const drag = (e) => {
      far ||= Math.hypot(e.clientX - down.clientX, e.clientY - down.clientY) > 3;
      if (far) moved(e.clientX - x, e.clientY - y);
      x = e.clientX;
      y = e.clientY;
    };
    element.addEventListener("pointermove", drag);
    element.addEventListener("pointerup", (up) => {
      element.removeEventListener("pointermove", drag);
      if (!far) clicked(up);
    }, { once: true });
  });
}

function wheel(event) {
  event.preventDefault();
  const turn = event.deltaY || event.deltaX, factor = Math.exp(Math.max(-60, Math.min(60, turn)) / 150);
  if (event.shiftKey) zoomY(factor, drawn.to.bytes(event.offsetY));
  else zoomX(factor, drawn.to.column(event.offsetX));
}

const keys = {
  "+": () => zoomX(0.7), "=": () => zoomX(0.7), "-": () => zoomX(1 / 0.7),
  ArrowLeft: () => move(-0.15, 0), ArrowRight: () => move(0.15, 0),
  ArrowUp: () => move(0, 0.15), ArrowDown: () => move(0, -0.15),
  0: () => show(wholeView()), p: showPeak,
  "/": () => document.getElementById("search").focus(),
  Escape: () => pin(null),
};

function keydown(event) {
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
}

function find(event) {
  state.found = search(tl, event.target.value);
  document.getElementById("matches").textContent = state.found ? foundText(state.found) : "";
  redraw();
}

function foundText(found) {
  let atPeak = 0;
  for (const s of found) if (s.columns[0] <= tl.peak.column && tl.peak.column < s.end) atPeak += s.size;
  return formatCount(found.size) + " of " + formatCount(tl.shapes.length) + ", " + formatBytes(atPeak) + " at the peak";
}

// node makes an element; text goes in as text, whatever it holds.
function node(tag, text, ...children) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

function describe(shape) {
  const box = document.getElementById("details");
  box.replaceChildren();
  if (!shape) {
    box.append(node("p", "Point at an allocation; click to keep it here."));
    return;
  }
  const list = node("dl");
  const row = (name, value) => list.append(node("dt", name), node("dd", value));
  const stack = shape.columns ? tl.stacks[shape.stack] : [];
  if (shape.columns) {
    row("size", formatBytes(shape.size) + " (" + formatCount(shape.size) + " B)");
    row("lifetime", lifetime(shape));
    if (shape.id >= 0) row("number", formatCount(shape.id));
  } else {
    row("size", formatCount(shape.count) + " smaller ones, up to " + formatBytes(shape.largest));
  }
  row("group", tl.groups[shape.group].label);
  box.append(list);
  const frames = node("ol");
  for (const f of stack) frames.append(node("li", tl.frames[f]));
  box.append(stack.length || !shape.columns ? frames : node("p", "no stack recorded"));
}

function lifetime(shape) {
  const from = shape.born < 0 ? "before recording" : "event " + formatCount(shape.born);
  const to = shape.freed < 0 ? "the end" : formatCount(shape.freed);
  if (!tl.elapsed || shape.born < 0 || shape.freed < 0) return from + " to " + to;
  const time = (event) => tl.elapsed[Math.min(tl.columns, Math.max(0, Math.floor(columnOf(tl, event))))];
  return from + " to " + to + ", about " + formatTime(Number((time(shape.freed) - time(shape.born)).toPrecision(3)));
}

function entry(color, stroke, label, value) {
  const patch = node("b");
  patch.style.background = color;
  if (stroke) patch.className = "stroke";
  const name = node("span", label);
  name.title = label;
  return node("li", "", patch, name, value);
}

function fillLegend() {
  const totals = document.getElementById("totals"), groups = document.getElementById("groups");
  if (tl.reserved) totals.append(entry(theme.reserved, true, "reserved", formatBytes(highest(tl.reserved))));
  if (tl.allocated) totals.append(entry(theme.allocated, true, "allocated", formatBytes(highest(tl.allocated))));
  totals.append(entry("", false, "active, as requested", formatBytes(tl.peak.bytes)));
  tl.groups.forEach((g, i) => groups.append(entry(theme.groups[i], false, g.label, formatBytes(g.at_peak))));
  const phases = document.getElementById("phases");
  tl.phaseNames.forEach((name, i) => {
    const times = tl.spans.filter((s) => s.name === name).length;
    phases.append(entry(theme.phases[i % theme.phases.length], false, name, formatCount(times)));
  });
  document.getElementById("phases-title").hidden = tl.phaseNames.length === 0;
}

function fillFacts() {
  const facts = ["device " + tl.device, formatCount(tl.events) + " events"];
  if (tl.to - tl.from < tl.events) facts.push("shown: " + formatCount(tl.from) + " to " + formatCount(tl.to - 1));
  if (tl.elapsed) facts.push(formatTime(tl.elapsed[tl.columns] - tl.elapsed[0]));
  if (tl.lost) facts.push(formatCount(tl.lost) + " events contradict the rest");
  document.getElementById("facts").textContent = facts.join(" · ");
}

function start() {
  fillFacts();
  fillLegend();
  describe(null);
  plot.addEventListener("wheel", wheel, { passive: false });
  plot.addEventListener("pointermove", hover);
  plot.addEventListener("pointerleave", () => { state.hovered = null; redraw(); });
  dragging(plot, (dx, dy) => move(-dx / drawn.frame.width, dy / drawn.frame.height), (e) => pin(under(e)));
  const across = () => overview.clientWidth - margin.left - margin.right;
  const jump = (e) => move(((e.offsetX - margin.left) / across() * tl.columns - (state.view.x0 + state.view.x1) / 2) / (state.view.x1 - state.view.x0), 0);
  dragging(overview, (dx) => move(dx / across() * tl.columns / (state.view.x1 - state.view.x0), 0), jump);
  document.addEventListener("keydown", keydown);
  document.getElementById("search").addEventListener("input", find);
  for (const [id, key] of [["in", "+"], ["out", "-"], ["all", "0"], ["peak", "p"]]) {
    document.getElementById(id).addEventListener("click", keys[key]);
  }
  new ResizeObserver(redraw).observe(plot);
}

start();
