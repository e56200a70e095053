// @vitest-environment happy-dom
import { expect, test } from 'vitest';
import { actOf } from './keys';

function press(key: string, target: EventTarget | null = null, held: Partial<KeyboardEvent> = {}) {
  return actOf({ key, target, ctrlKey: false, metaKey: false, altKey: false, ...held });
}

test('keys act on the plot', () => {
  expect(press('p')).toBe('peak');
  expect(press('ArrowLeft')).toBe('left');
  expect(press('q')).toBeNull();
});

test('what is typed into a field, or meant for the browser, is left alone', () => {
  expect(press('p', document.createElement('input'))).toBeNull();
  expect(press('-', document.createElement('select'))).toBeNull();
  const slider = document.createElement('input');
  slider.type = 'range';
  expect(press('ArrowRight', slider)).toBeNull();
  expect(press('0', null, { ctrlKey: true })).toBeNull();
  expect(press('p', document.createElement('canvas'))).toBe('peak');
});
