import { expect, test } from 'vitest';
import { bytes, count, dollars, duration, moment, percent, price, rate, seconds, share } from './format';

test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1024, '1.00 KiB'],
  [20 * 2 ** 20, '20.00 MiB'],
  [2647894016, '2.47 GiB'],
  [134873088, '128.62 MiB'], // between 128.62 and 128.63: the even one, as the command line has it
  [134610944, '128.38 MiB'],
  [2 ** 41, '2.00 TiB'],
])('%d bytes are %s', (n, text) => expect(bytes(n)).toBe(text));

test('numbers have the digits that say something', () => {
  expect(count(109483778)).toBe('109,483,778');
  expect([rate(0.4283), rate(217.83), rate(12345.6)]).toEqual(['0.4283', '217.8', '12,346']);
  expect([dollars(77.78), dollars(12345)]).toEqual(['$77.78', '$12,345']);
  expect([price(0), price(0.02134), price(0.01), price(0.43), price(1.5)]).toEqual(['$0.00', '$0.0213', '$0.0100', '$0.43', '$1.50']);
  expect([duration(0.5), duration(25.44), duration(300)]).toEqual(['30 min', '25.4 h', '12.5 days']);
  expect([percent(11.2), share(0.007126), share(0)]).toEqual(['11 %', '0.71 %', '0 %']);
  expect([seconds(0.09996), seconds(2.334)]).toEqual(['100 ms', '2.33 s']);
});

test('a time of another day has its date', () => {
  const now = new Date(2026, 10, 15, 12);
  expect(moment(new Date(2026, 10, 15, 9, 5, 7).toISOString(), now)).toBe('09:05:07');
  expect(moment(new Date(2026, 10, 14, 9, 5, 7).toISOString(), now)).toBe('2026-11-14 09:05');
});
