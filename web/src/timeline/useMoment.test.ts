import { expect, test } from 'vitest';
import { momentOf, viewOf, viewText } from './useMoment';

const read = (address: Record<string, string>) => momentOf({ get: (key) => address[key] ?? '' });

test('a view is the same after the address', () => {
  expect(viewText({ x0: 12.4, x1: 99.1, y0: 0, y1: 1000 }, 1000)).toBe('12..100');
  expect(viewText({ x0: 12.4, x1: 99.1, y0: 5, y1: 500.2 }, 1000)).toBe('12..100,5..500');
  expect(viewOf('12..100')).toEqual({ x0: 12, x1: 100 });
  expect(viewOf('12..100,5..500')).toEqual({ x0: 12, x1: 100, y0: 5, y1: 500 });
});

test('what cannot be read is left open', () => {
  expect(read({})).toEqual({ view: null, cursor: null });
  expect(read({ view: 'all of it', at: 'the peak' })).toEqual({ view: null, cursor: null });
  expect(read({ view: '1..9', at: '-1' })).toEqual({ view: { x0: 1, x1: 9 }, cursor: -1 });
});
