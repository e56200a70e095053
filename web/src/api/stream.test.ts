import { expect, test } from 'vitest';
import { events } from './stream';

function answer(text: string): ReadableStream<Uint8Array> {
  const bytes = new TextEncoder().encode(text);
  let at = 0;
  // As it may arrive: cut anywhere, even within a letter.
  return new ReadableStream({
    pull(to) {
      if (at >= bytes.length) return to.close();
      to.enqueue(bytes.slice(at, (at += 7)));
    },
  });
}

async function all(text: string) {
  const got = [];
  for await (const event of events(answer(text))) got.push(event);
  return got;
}

test('events are read however they are cut', async () => {
  const text = 'event: progress\ndata: {"done":1,"of":3}\n\nevent: plan\ndata: {"label":"2 × A100, 3 €"}\n\n';
  expect(await all(text)).toEqual([
    { name: 'progress', data: { done: 1, of: 3 } },
    { name: 'plan', data: { label: '2 × A100, 3 €' } },
  ]);
});

test('half an event at the end is none', async () => {
  expect(await all('event: progress\ndata: {"done":1}\n\nevent: pl')).toHaveLength(1);
});
