import { expect, test } from 'vitest';
import { groupModules } from './modules';

const of = (module: string, bytes: number) => ({ module, bytes });

test('layers that hold the same are one, as on the command line', () => {
  const modules = [of('bert.embeddings', 9), of('h.11', 7), of('h.0', 5), of('h.1', 5), of('h.2', 5), of('k.0', 5), of('h.4', 3), of('h.6', 3), of('', 1)];
  expect(groupModules(modules)).toEqual([
    { name: 'bert.embeddings', layers: 1, each: 9 },
    { name: 'h.11', layers: 1, each: 7 },
    { name: 'h.0 to 2', layers: 3, each: 5 },
    { name: 'k.0', layers: 1, each: 5 },
    { name: 'h, 2 layers', layers: 2, each: 3 },
    { name: 'outside of modules', layers: 1, each: 1 },
  ]);
});
