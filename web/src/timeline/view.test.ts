import { describe, expect, test } from 'vitest';
import { around, between, move, reveal, scale, whole, within, zoomX, zoomY } from './view';
import { drag, gripAt } from './brush';
import { covers, wholeWindow, windowFor } from './window';

const world = { x: 1000, y: 1 << 20 };
const all = whole(world);

describe('a view', () => {
  test('keeps the place under the pointer when zoomed', () => {
    const v = zoomX(world, all, 0.5, 250);
    expect(v).toMatchObject({ x0: 125, x1: 625 });
    expect((250 - v.x0) / (v.x1 - v.x0)).toBeCloseTo(0.25);
  });

  test('does not leave the world', () => {
    expect(zoomX(world, all, 3)).toEqual(all);
    expect(move(world, zoomX(world, all, 0.5, 0), -1, 0)).toMatchObject({ x0: 0, x1: 500 });
    expect(move(world, zoomX(world, all, 0.5, 0), 5, 0)).toMatchObject({ x0: 500, x1: 1000 });
    expect(within(world, { ...all, y0: -5, y1: 600 })).toMatchObject({ y0: 0, y1: 605 });
  });

  test('goes no closer than eight moments, about what is pointed at', () => {
    const v = zoomX(world, all, 1e-9, 500);
    expect(v.x1 - v.x0).toBe(8);
    expect(v.x0).toBeLessThan(500);
    expect(v.x1).toBeGreaterThan(500);
  });

  test('works in a world smaller than that', () => {
    expect(zoomX({ x: 3, y: 100 }, { x0: 0, x1: 3, y0: 0, y1: 100 }, 0.1)).toEqual({ x0: 0, x1: 3, y0: 0, y1: 100 });
  });

  test('zooms bytes from the bottom', () => {
    expect(zoomY(world, all, 0.25)).toMatchObject({ y0: 0, y1: 1 << 18 });
  });

  test('jumps to a moment without widening, and reveals one with as little as needed', () => {
    const near = { ...all, x0: 0, x1: 100 };
    expect(around(world, near, 500)).toMatchObject({ x0: 450, x1: 550 });
    expect(around(world, all, 500, 1 / 8)).toMatchObject({ x0: 437.5, x1: 562.5 });
    expect(reveal(world, near, 50)).toBe(near);
    expect(reveal(world, near, 200)).toMatchObject({ x0: 110, x1: 210 });
  });

  test('is drawn where it says', () => {
    const s = scale({ left: 10, top: 20, width: 100, height: 50 }, { x0: 0, x1: 10, y0: 0, y1: 5 });
    expect(s.x(5)).toBe(60);
    expect(s.y(0)).toBe(70);
    expect(s.place(s.x(3.5))).toBeCloseTo(3.5);
    expect(s.bytes(s.y(1.5))).toBeCloseTo(1.5);
  });

  test('moves evenly from one to another', () => {
    expect(between(all, { ...all, x1: 500 }, 0)).toEqual(all);
    expect(between(all, { ...all, x1: 500 }, 1).x1).toBe(500);
    expect(between(all, { ...all, x1: 500 }, 0.5).x1).toBe(750);
  });
});

describe('the brush', () => {
  const v = { ...all, x0: 200, x1: 400 };

  test('is held at its ends, in its middle or beside it', () => {
    expect(gripAt(203, 200, 400, 6)).toBe('start');
    expect(gripAt(396, 200, 400, 6)).toBe('end');
    expect(gripAt(300, 200, 400, 6)).toBe('window');
    expect(gripAt(100, 200, 400, 6)).toBe('outside');
    expect(gripAt(201, 200, 202, 6)).toBe('start');
    expect(gripAt(203, 200, 202, 6)).toBe('end');
  });

  test('moves, widens, turns over and is drawn anew', () => {
    expect(drag(world, v, 'window', 300, 350)).toMatchObject({ x0: 250, x1: 450 });
    expect(drag(world, v, 'start', 200, 100)).toMatchObject({ x0: 100, x1: 400 });
    expect(drag(world, v, 'start', 200, 500)).toMatchObject({ x0: 400, x1: 500 });
    expect(drag(world, v, 'outside', 700, 600)).toMatchObject({ x0: 600, x1: 700 });
    expect(drag(world, v, 'end', 400, 2000)).toMatchObject({ x0: 200, x1: 1000 });
  });
});

describe('a window', () => {
  const large = { x: 1_000_001, y: 1 << 30 };

  test('is not needed for a view of nearly all, or of few events', () => {
    expect(windowFor(large, { ...whole(large), x1: 600_000 }, 800)).toBeNull();
    expect(windowFor({ x: 900, y: 1 }, { x0: 0, x1: 10, y0: 0, y1: 1 }, 800)).toBeNull();
    expect(wholeWindow(1_000_000, 800)).toEqual({ from: 0, to: 1_000_000, columns: 1600 });
  });

  test('holds what is seen, for any view', () => {
    for (let i = 0; i < 500; i++) {
      const seen = 10 * 1.025 ** i;
      if (seen > 400_000) break;
      const x0 = (i * 7919.3) % (large.x - seen);
      const view = { ...whole(large), x0, x1: x0 + seen };
      const w = windowFor(large, view, 800);
      if (!w) continue;
      expect(covers(w, view, large), `${x0} and ${seen}`).toBe(true);
      const shown = (w.columns * seen) / (w.to - w.from + 1);
      expect(Math.min(shown, seen)).toBeGreaterThanOrEqual(Math.min(799, seen));
    }
  });

  test('stays the same when the view moves a little', () => {
    const view = { ...whole(large), x0: 300_000, x1: 300_900 };
    expect(windowFor(large, { ...view, x0: view.x0 + 20, x1: view.x1 + 20 }, 800)).toEqual(windowFor(large, view, 800));
  });
});
