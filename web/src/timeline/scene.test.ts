import { beforeEach, describe, expect, test } from 'vitest';
import { Scene, type Look } from './scene';
import { timelineOf } from './testing';

const t = timelineOf(4, [
  { size: 2, from: 0, to: 4, frames: ['model.py:1 init'] },
  { size: 1, from: 1, to: 3, frames: ['train.py:2 step'] },
]);
const base: Look = {
  view: { x0: 0, x1: 4, y0: 0, y1: 4 },
  world: { x: 4, y: 4 },
  width: 4,
  height: 4,
  theme: 'dark',
  query: '',
  atAddress: [],
  selected: -1,
  group: -1,
  pointer: null,
};

let scene: Scene;
beforeEach(() => {
  scene = new Scene();
  scene.setWhole(t);
});

describe('a scene', () => {
  test('draws nothing without data', () => {
    expect(new Scene().look(base).pixels).toBeNull();
  });

  test('draws again only what changed', () => {
    expect(scene.look(base).pixels).not.toBeNull();
    expect(scene.look(structuredClone(base)).pixels).toBeNull();
    expect(scene.look({ ...base, pointer: { x: 0, y: 0 } }).pixels).toBeNull(); // on nothing
    expect(scene.look({ ...base, pointer: { x: 1, y: 1 } }).pixels).not.toBeNull();
    expect(scene.look({ ...base, pointer: { x: 2, y: 1 } }).pixels).toBeNull(); // on the same
    expect(scene.look({ ...base, theme: 'light' }).pixels).not.toBeNull();
  });

  test('says what the pointer is on', () => {
    expect(scene.look({ ...base, pointer: { x: 1, y: 1 } }).under).toEqual({
      kind: 'shape',
      id: 1,
      size: 1,
      group: 0,
      born: 0,
      freed: 2,
      frames: ['train.py:2 step'],
    });
    expect(scene.look({ ...base, pointer: { x: 0, y: 0 } }).under).toBeNull();
  });

  test('lights up what the pointer is on, and only as long as it is', () => {
    const plain = scene.look(base).pixels!.slice();
    const lit = scene.look({ ...base, pointer: { x: 1, y: 1 } }).pixels!.slice();
    expect(lit).not.toEqual(plain);
    expect(scene.look({ ...base, pointer: { x: 1, y: 1 } }).pixels).toBeNull();
    expect(scene.look(base).pixels).toEqual(plain);
  });

  test('counts what a search found', () => {
    expect(scene.look(base).found).toBe(-1);
    expect(scene.look({ ...base, query: 'train' }).found).toBe(1);
    expect(scene.look({ ...base, query: '.py' }).found).toBe(2);
    expect(scene.look({ ...base, query: 'nowhere' }).found).toBe(0);
  });

  test('takes the finer window where it covers the view', () => {
    scene.setWindow({ ...t, from: 1, to: 2, bands: [], boxes: { ...t.boxes, count: 0 } });
    const inside = { ...base, view: { ...base.view, x0: 1, x1: 3 }, pointer: { x: 0, y: 3 } };
    expect(scene.look(inside).under).toBeNull(); // the window is empty
    expect(scene.look({ ...inside, view: base.view }).under).not.toBeNull();
  });

  test('lists what lies on top of each other', () => {
    expect(scene.liveAt(base, 1.5).map((u) => u.kind === 'shape' && u.id)).toEqual([1, 0]);
    expect(scene.liveAt(base, 99).map((u) => u.kind === 'shape' && u.id)).toEqual([0]);
  });
});
