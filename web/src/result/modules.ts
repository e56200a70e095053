// Modules as the command line lists them: layers that hold the same are one.
import type { Schemas } from '../api/client';

export interface ModuleGroup {
  name: string;
  /** how many layers there are, 1 for what is no layer */
  layers: number;
  /** what each of them holds */
  each: number;
}

/** groupModules joins layers of one list that follow each other and hold the same. */
export function groupModules(modules: Schemas['ModuleBytes'][]): ModuleGroup[] {
  const groups: { list: string; layers: string[]; each: number }[] = [];
  for (const { module, bytes } of modules) {
    const [, list = module, layer] = /^(.+)\.(\d+)$/.exec(module) ?? [];
    const last = groups.at(-1);
    if (layer && last?.layers.length && last.list === list && last.each === bytes) last.layers.push(layer);
    else groups.push({ list, layers: layer ? [layer] : [], each: bytes });
  }
  return groups.map(({ list, layers, each }) => ({ name: nameOf(list, layers), layers: layers.length || 1, each }));
}

function nameOf(list: string, layers: string[]): string {
  const [first, last] = [layers[0], layers.at(-1)];
  if (first === undefined) return list || 'outside of modules';
  if (first === last) return `${list}.${first}`;
  return Number(last) - Number(first) === layers.length - 1 ? `${list}.${first} to ${last}` : `${list}, ${layers.length} layers`;
}
