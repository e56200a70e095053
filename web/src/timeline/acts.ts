import type { Act } from './keys';
import type { Under } from './scene';
import type { Stage } from './stage';
import { move, reveal, zoomX, zoomY } from './view';

/** Around is what acts reach in addition to the stage. */
export interface Around {
  select(under: Under | null): void;
  selected: Under | null;
  finds: { go(by: number): void }; // to the next match
  takeRange(): void; // sums up what is seen
  focusSearch(): void;
  help(): void;
  failures: { event: number }[];
}

const step = 0.15;

/** perform does what a key or a button asks for. */
export function perform(stage: Stage, around: Around, act: Act) {
  const { view, world } = stage;
  switch (act) {
    case 'left':
      return stage.show(move(world, view, -step, 0));
    case 'right':
      return stage.show(move(world, view, step, 0));
    case 'up':
      return stage.show(move(world, view, 0, step));
    case 'down':
      return stage.show(move(world, view, 0, -step));
    case 'in':
      return stage.glide(zoomX(world, view, 0.6, middle(stage)));
    case 'out':
      return stage.glide(zoomX(world, view, 1 / 0.6, middle(stage)));
    case 'taller':
      return stage.glide(zoomY(world, view, 0.6));
    case 'shorter':
      return stage.glide(zoomY(world, view, 1 / 0.6));
    case 'all':
      return stage.showAll();
    case 'fit':
      return stage.fit();
    case 'peak':
      return stage.state.whole ? stage.goTo(stage.state.whole.peak.event, 1 / 8) : undefined;
    case 'failure':
      return nextFailure(stage, around.failures);
    case 'previous event':
      return stepCursor(stage, -1);
    case 'next event':
      return stepCursor(stage, 1);
    case 'above':
      return void selectBeside(stage, around, -1);
    case 'below':
      return void selectBeside(stage, around, 1);
    case 'next match':
      return around.finds.go(1);
    case 'previous match':
      return around.finds.go(-1);
    case 'range':
      return around.takeRange();
    case 'search':
      return around.focusSearch();
    case 'help':
      return around.help();
    case 'clear':
      return around.select(null);
  }
}

/** middle is what zooming by keys keeps in place: the cursor, if it is seen. */
function middle({ view, state }: Stage): number {
  const x = (state.cursor ?? -2) + 1;
  return x >= view.x0 && x <= view.x1 ? x : (view.x0 + view.x1) / 2;
}

function stepCursor(stage: Stage, by: number) {
  stage.setCursor((stage.state.cursor ?? -1) + by);
  stage.show(reveal(stage.world, stage.view, (stage.state.cursor ?? -1) + 1));
}

function nextFailure(stage: Stage, failures: { event: number }[]) {
  const here = stage.state.cursor ?? -1;
  const next = failures.find((f) => f.event > here) ?? failures[0];
  if (next) stage.goTo(next.event, 1 / 8);
}

/** selectBeside selects what lies above or below the selection at the cursor, or the topmost. */
async function selectBeside(stage: Stage, around: Around, by: number) {
  const live = await stage.liveAtCursor();
  const { selected } = around;
  const at = selected?.kind === 'shape' ? live.findIndex((u) => u.kind === 'shape' && u.id === selected.id) : -1;
  const next = live[at < 0 ? (by > 0 ? 0 : live.length - 1) : Math.min(Math.max(at + by, 0), live.length - 1)];
  if (next) around.select(next);
}
