// Lines of stacks as text, and the allocations of events.
import type { Schemas } from '../api/client';
import type { Under } from './scene';

type Frame = Schemas['Frame'];

/** placeText is where a frame is. The modules of a prediction have no line. */
export function placeText(f: Frame): string {
  return f.line ? `${f.file}:${f.line}` : f.file;
}

/** frameText is a frame as a timeline has it. */
export function frameText(f: Frame): string {
  return `${placeText(f)} ${f.function}`;
}

/** madeBy names the line that made an allocation, and the user's that called it, if that is another one. */
export function madeBy({ model_frame: made, user_frame: user, backward_node }: Pick<Schemas['Place'], 'model_frame' | 'user_frame' | 'backward_node'>): string {
  if (!made) return backward_node ?? '';
  const same = !user || frameText(user) === frameText(made);
  return shortFile(frameText(made)) + (same ? '' : `, called from ${shortFile(frameText(user))}`);
}

/** allocationOf is the allocation of an event, as the plot knows it; null if it belongs to none. */
export function allocationOf(row: Schemas['Event']): Under | null {
  if (row.allocation === undefined) return null;
  const frames = row.frames?.map(frameText) ?? [];
  return { kind: 'shape', id: row.allocation, size: row.bytes, group: -1, born: row.born ?? -1, freed: row.freed ?? -1, frames };
}

// The rules of internal/trace/origin.go: directories of code that people use and do not write, files that the
// interpreter made up, and C++.
const directories = new RegExp(
  String.raw`(^|[\/])(torch\w*|functorch|triton|transformers|accelerate|peft|trl|diffusers|timm|datasets|lightning\w*|pytorch_lightning|deepspeed|megatron|apex|transformer_engine|flash_attn|xformers|bitsandbytes|composer|fairscale|site-packages|dist-packages|importlib|multiprocessing|concurrent|memorymark_\w+|lib[\/]python3[^\/]*)[\/]`,
);
const madeUp = /^(<(?!ipython-input)|\?\?|$)/;
const native = /\.(cpp|cc|cxx|c|h|hpp|cu|cuh|so|S)(\.|$)/;

/** Place is a frame taken apart. */
export interface Place {
  name: string; // of the function
  file: string;
  line: string; // empty where it is not known
  library: boolean; // not written by the user
}

/** placeOf takes a frame of a timeline apart. */
export function placeOf(text: string): Place {
  const [, file = '', line = '', name = ''] = /^(.*?):(\d+) (.*)$/.exec(text) ?? /^(\S+)() (.*)$/.exec(text) ?? [];
  if (!name) return { name: text, file: '', line: '', library: false };
  const library = directories.test(file) || madeUp.test(file) || native.test(file) || name.includes('::');
  return { name, file, line, library };
}

/** packageOf is the library that a file belongs to, as people call it. */
export function packageOf(file: string): string {
  const path = file.replaceAll('\\', '/');
  const installed = /(?:site|dist)-packages\/([^/]+)/.exec(path)?.[1];
  if (installed) return installed.replace(/\.py$/, '');
  if (/\/lib\/python3/.test(path)) return 'Python';
  return directories.exec(path)?.[2] ?? 'C++';
}

/** shortFile is a file without where libraries are installed. */
export function shortFile(file: string): string {
  return file.replace(/^.*[\\/](?:site|dist)-packages[\\/]/, '');
}

export type Run = { kind: 'frame'; place: Place } | { kind: 'folded'; places: Place[] };

const layer = /torch\/nn\/(?!modules\/(module|container)\.py)/;
const trainer = /^(accelerate|lightning\w*|pytorch_lightning|deepspeed|composer)$/;

/** makerOf is the position of the frame that says best what made an allocation (trace.Maker). */
function makerOf(places: Place[]): number {
  const model = places.findIndex(({ file, library }) => !library || !/^(torch|functorch|C\+\+|memorymark_\w+|Python)$/.test(packageOf(file)));
  const at = places[model];
  if (at?.library && !trainer.test(packageOf(at.file))) return model;
  const inner = places.findIndex(({ file }) => layer.test(file.replaceAll('\\', '/')));
  return inner >= 0 && (model < 0 || inner < model) ? inner : model;
}

/**
 * runsOf folds a stack: of libraries only the frame that says what part of a model asked for the memory is kept. A
 * single frame is not worth a fold.
 */
export function runsOf(frames: string[]): Run[] {
  const places = frames.map(placeOf);
  const maker = makerOf(places);
  const runs: Run[] = [];
  for (const [i, place] of places.entries()) {
    const last = runs.at(-1);
    if (!place.library || i === maker) runs.push({ kind: 'frame', place });
    else if (last?.kind === 'folded') last.places.push(place);
    else runs.push({ kind: 'folded', places: [place] });
  }
  return runs.map((run) => (run.kind === 'folded' && run.places.length === 1 ? { kind: 'frame', place: run.places[0]! } : run));
}
