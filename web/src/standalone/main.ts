/**
 * The page that memorymark snapshot timeline writes: one file, no server. It draws with the page's own code;
 * what is here puts text around the plot. Texts come from other people's programs and go in as text.
 */

import { perform, type Around } from '../timeline/acts';
import { colorOf, css, type Theme } from '../timeline/colors';
import { decode, highest, type Summary, type Wire } from '../timeline/data';
import { formatBytes, formatCount, formatMicros, formatMoment } from '../timeline/format';
import { listen } from '../timeline/gestures';
import { actOf } from '../timeline/keys';
import { inkOf } from '../timeline/plot';
import type { Under } from '../timeline/scene';
import { Stage } from '../timeline/stage';
import { LocalDrawer } from './drawer';

const system = matchMedia('(prefers-color-scheme: light)');
const theme: Theme = (document.documentElement.dataset.theme ?? (system.matches ? 'light' : 'dark')) === 'light' ? 'light' : 'dark';
const wire = JSON.parse(at('timeline').textContent) as Wire;
const stage = new Stage();
let described: Under | null | undefined;

const around: Around = {
  select(under) {
    around.selected = under;
    stage.setEmphasis({ selected: under?.kind === 'shape' ? under.id : -1 });
    show();
  },
  selected: null,
  finds: { go() {} },
  takeRange() {},
  focusSearch: () => at('search').focus(),
  help: () => at('plot').focus(),
  failures: wire.failures,
};

function at(id: string): HTMLElement {
  return document.getElementById(id)!;
}

function node(tag: string, text: string, ...children: Node[]): HTMLElement {
  const element = document.createElement(tag);
  element.textContent = text;
  element.append(...children);
  return element;
}

/** show says what is selected, or else under the pointer, and what a search found. */
function show() {
  const { found, whole, hovered } = stage.state;
  at('matches').textContent = found < 0 || !whole ? '' : `${formatCount(found)} of ${formatCount(whole.shown)}`;
  const under = around.selected ?? hovered;
  if (under === described) return;
  described = under;
  at('details').replaceChildren(...(under ? describe(under) : [node('p', 'Point at an allocation; click to pin it.')]));
}

function describe(under: Under): HTMLElement[] {
  const rows: [string, string][] = [['for', wire.groups[under.group]!.label]];
  if (under.kind === 'band') {
    rows.unshift(['size', `${formatCount(under.count)} smaller ones, up to ${formatBytes(under.largest)}`]);
    return [list(rows)];
  }
  rows.unshift(['size', `${formatBytes(under.size)} (${formatCount(under.size)} B)`]);
  rows.push(['made', formatMoment(under.born)], ['freed', under.freed < 0 ? 'never' : formatMoment(under.freed)]);
  if (under.id >= 0) rows.push(['number', `#${formatCount(under.id)}`]);
  const stack = node('ol', '', ...under.frames.map((frame) => node('li', frame)));
  return [list(rows), under.frames.length > 0 ? stack : node('p', 'No stack was recorded.')];
}

function list(rows: [string, string][]): HTMLElement {
  return node('dl', '', ...rows.flatMap(([name, value]) => [node('dt', name), node('dd', value)]));
}

function entry(color: string, line: boolean, name: string, value: string): HTMLElement {
  const patch = node('b', '');
  patch.style.background = color;
  patch.className = line ? 'line' : '';
  const label = node('span', name);
  label.title = name;
  return node('li', '', patch, label, document.createTextNode(value));
}

function fillLegend({ lines, groups, spans, peak }: Summary) {
  const ink = inkOf(theme);
  const totals = [entry('', false, 'active, as requested', formatBytes(peak.bytes))];
  if (lines.allocated) totals.unshift(entry(ink.allocated, true, 'allocated, with rounding', formatBytes(highest(lines.allocated))));
  if (lines.reserved) totals.unshift(entry(ink.reserved, true, 'reserved from the card', formatBytes(highest(lines.reserved))));
  at('totals').append(...totals);
  at('groups').append(...groups.map((g) => entry(css(colorOf(theme, g.color)), false, g.label, formatBytes(g.at_peak))));
  const phases = [...new Set(spans.map((s) => s.name))];
  at('phases').append(
    ...phases.map((name, i) =>
      entry(css(ink.phases[i % ink.phases.length]!), false, name, formatCount(spans.filter((s) => s.name === name).length)),
    ),
  );
  at('phases-title').hidden = phases.length === 0;
}

function fillFacts({ device, events, from, to, lost, lines: { elapsed, columns } }: Summary) {
  const facts = [`device ${device}`, `${formatCount(events)} events`];
  if (to - from < events) facts.push(`shown: ${formatCount(from)} to ${formatCount(to - 1)}`);
  if (elapsed) facts.push(formatMicros(elapsed[columns]! - elapsed[0]!));
  if (lost) facts.push(`${formatCount(lost)} events contradict the rest`);
  at('facts').textContent = facts.join(' · ');
}

function start() {
  const plot = at('plot') as HTMLCanvasElement;
  const overview = at('overview') as HTMLCanvasElement;
  stage.start((on) => new LocalDrawer(decode(wire), on));
  stage.setTheme(theme);
  stage.attach(plot, overview);
  stage.subscribe(show);
  stage.open(() => '', wire.events, false);
  stage.show({ ...stage.view, x0: wire.from, x1: wire.to + 1 });
  if (wire.failures[0]) stage.goTo(wire.failures[0].event);
  fillFacts(stage.state.whole!);
  fillLegend(stage.state.whole!);
  show();
  listen(stage, plot, overview, { click: (under) => around.select(under) });
  at('search').addEventListener('input', (event) => stage.setEmphasis({ query: (event.target as HTMLInputElement).value }));
  for (const act of ['in', 'out', 'all', 'peak'] as const) at(act).addEventListener('click', () => perform(stage, around, act));
  system.addEventListener('change', () => location.reload());
  document.addEventListener('keydown', (event) => {
    const act = actOf(event);
    if (!act) return;
    event.preventDefault();
    perform(stage, around, act);
  });
}

start();
