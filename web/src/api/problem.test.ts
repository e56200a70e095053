import { expect, test } from 'vitest';
import { Problem } from './problem';

test('a problem names the keys that are wrong', () => {
  const problem = Problem.from(422, {
    title: 'Unprocessable Entity',
    detail: 'validation failed',
    errors: [
      { location: 'body.batch', message: 'batch is -3; it must be at least 1' },
      { location: 'body.workload.config.hidden_size', message: 'config.hidden_size is missing' },
    ],
  });
  expect(problem.message).toBe('batch is -3; it must be at least 1; config.hidden_size is missing');
  expect(problem.details.map((detail) => detail.key)).toEqual(['batch', 'config']);
});

test('a problem says what the server said, and never nothing', () => {
  expect(Problem.from(503, { detail: 'the server is stopping' }).message).toBe('the server is stopping');
  expect(Problem.from(500, undefined).message).toBe('The server answered 500.');
  expect(Problem.of(new TypeError('x is undefined')).message).toBe('x is undefined');
  expect(Problem.lost().isLost).toBe(true);
});
