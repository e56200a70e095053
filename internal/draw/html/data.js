// Pure functions on the timeline's data: no page, no canvas.

function sums(differences) {
  if (!differences) return null;
  const out = new Float64Array(differences.length);
  let last = 0;
  for (let i = 0; i < out.length; i++) out[i] = last += differences[i];
  return out;
}

// decode turns what Go wrote (internal/timeline/json.go) into arrays to draw from.
function decode(raw) {
  const tl = { ...raw };
  for (const key of ["moments", "elapsed", "active", "allocated", "reserved"]) tl[key] = sums(raw[key]);
  tl.columns = tl.moments.length;
  tl.shapes = (raw.shapes || []).map(decodeShape);
  tl.bands = decodeBands(raw.bands || [], tl.active);
  tl.spans = raw.spans || [];
  tl.failures = raw.failures || [];
  tl.groups = raw.groups || [];
  tl.frames = raw.frames || [];
  tl.phaseNames = [...new Set(tl.spans.map((s) => s.name))];
  tl.most = Math.max(1, highest(tl.active), highest(tl.reserved), highest(tl.allocated)) * 1.08;
  return tl;
}

function decodeShape(numbers) {
  const [id, size, group, stack, born, freed, end] = numbers;
  const steps = (numbers.length - 7) / 2;
  const columns = new Int32Array(steps + 1), offsets = new Float64Array(steps);
  let column = 0, offset = 0;
  for (let i = 0; i < steps; i++) {
    columns[i] = column += numbers[7 + 2 * i];
    offsets[i] = offset += numbers[8 + 2 * i];
  }
  columns[steps] = end;
  return { id, size, group, stack, born, freed, end, columns, offsets };
}

// decodeBands gives each band its bottom and top; the last lies under the active line.
function decodeBands(bands, active) {
  let top = active;
  const out = [];
  for (const band of bands.slice().reverse()) {
    const heights = sums(band.heights);
    const bottom = top.map((v, c) => v - heights[c]);
    out.unshift({ ...band, bottom, top });
    top = bottom;
  }
  return out;
}

function highest(values) {
  let most = 0;
  if (values) for (const v of values) if (v > most) most = v;
  return most;
}

// sample picks the column that each pixel shows: the highest of those under it, as Go does with
// events. before[c] is the first pixel that shows a column at or after c.
function sample(tl, view, width) {
  const scale = (view.x1 - view.x0) / width;
  const columns = new Int32Array(width), starts = new Int32Array(width + 1);
  for (let p = 0; p <= width; p++) {
    starts[p] = Math.min(tl.columns - 1, Math.max(0, Math.floor(view.x0 + p * scale)));
  }
  for (let p = 0; p < width; p++) {
    let best = starts[p];
    for (let c = best + 1; c < starts[p + 1]; c++) if (tl.active[c] > tl.active[best]) best = c;
    columns[p] = best;
  }
  const before = new Int32Array(tl.columns + 1).fill(width);
  for (let p = width - 1, c = tl.columns; c >= 0; c--) {
    while (p >= 0 && columns[p] >= c) p--;
    before[c] = p + 1;
  }
  return { columns, starts, before, width };
}

// shapeAt returns the shape or band that covers an offset in a column.
function shapeAt(tl, column, bytes) {
  for (const s of tl.shapes) {
    if (column < s.columns[0] || column >= s.end) continue;
    const offset = s.offsets[stepAt(s, column)];
    if (bytes >= offset && bytes < offset + s.size) return s;
  }
  return tl.bands.find((b) => bytes >= b.bottom[column] && bytes < b.top[column]) || null;
}

function stepAt(shape, column) {
  let low = 0, high = shape.offsets.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (shape.columns[middle] <= column) low = middle; else high = middle - 1;
  }
  return low;
}

// search returns the shapes that a query means: "20MiB" is a size (within 1 %), ">100MiB" and
// "<1KiB" are limits, anything else is a part of a frame or of a group's name.
function search(tl, query) {
  query = query.trim();
  if (!query) return null;
  const size = parseSize(query);
  const test = size ? sizeTest(size) : textTest(tl, query.toLowerCase());
  return new Set(tl.shapes.filter(test));
}

function parseSize(text) {
  const m = /^([<>]?)\s*=?\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)(i?b)?$/i.exec(text);
  if (!m) return null;
  return { sign: m[1], bytes: Number(m[2]) * 1024 ** " kmgt".indexOf(m[3].toLowerCase() || " ") };
}

function sizeTest({ sign, bytes }) {
  if (sign === ">") return (s) => s.size >= bytes;
  if (sign === "<") return (s) => s.size <= bytes;
  return (s) => Math.abs(s.size - bytes) <= bytes / 100;
}

function textTest(tl, text) {
  const frames = tl.frames.map((f) => f.toLowerCase().includes(text));
  const stacks = tl.stacks.map((s) => s.some((f) => frames[f]));
  const groups = tl.groups.map((g) => g.label.toLowerCase().includes(text));
  return (s) => stacks[s.stack] || groups[s.group];
}

// columnOf is Timeline.X in Go: where the moment after an event begins.
function columnOf(tl, event) {
  return (event - tl.from + 1) * tl.columns / (tl.to - tl.from + 1);
}

function eventOf(tl, column) {
  return Math.floor(column * (tl.to - tl.from + 1) / tl.columns) + tl.from - 1;
}

function roundStep(range, parts) {
  const rough = range / parts;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 2.5, 5, 10].find((f) => f * power >= rough) * power;
}

// timeTicks places round times where events reach them, the roundest first; see TimeTicks in Go.
function timeTicks(tl, view, gap) {
  if (!tl.elapsed) return [];
  const first = Math.max(0, Math.floor(view.x0)), last = Math.min(tl.columns, Math.ceil(view.x1));
  const start = tl.elapsed[first], end = tl.elapsed[last], ticks = [];
  const far = (column) => ticks.every((t) => Math.abs(t.column - column) >= gap);
  for (let step = 10 ** Math.ceil(Math.log10(end + 1)); step >= 1; step = finer(step)) {
    if ((end - start) / step > 1000) break;
    for (let time = Math.ceil(start / step) * step; time <= end; time += step) {
      const column = lowerBound(tl.elapsed, time);
      const reached = tl.elapsed[column];
      time = Math.floor(reached / step) * step;
      if (column >= first && column <= last && far(column) && reached - time <= step / 4) ticks.push({ column, time });
    }
  }
  return ticks;
}

function finer(step) {
  const lead = Math.round(step / 10 ** Math.floor(Math.log10(step) + 1e-9));
  return lead === 5 ? step / 5 * 2 : step / 2;
}

function lowerBound(values, wanted) {
  let low = 0, high = values.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1; else high = middle;
  }
  return low;
}

const units = [["TiB", 1024 ** 4], ["GiB", 1024 ** 3], ["MiB", 1024 ** 2], ["KiB", 1024]];

function formatBytes(n) {
  for (const [name, size] of units) if (n >= size) return (n / size).toFixed(2) + " " + name;
  return n + " B";
}

function formatCount(n) { return n.toLocaleString("en-US"); }

function formatTime(micros) {
  const trim = (v) => String(Number(v.toFixed(3)));
  if (micros === 0) return "0";
  if (micros < 1000) return trim(micros) + " µs";
  if (micros < 1e6) return trim(micros / 1e3) + " ms";
  return trim(micros / 1e6) + " s";
}
