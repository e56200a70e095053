import { afterEach, expect, test, vi } from 'vitest';
import { send } from './transport';

afterEach(() => vi.unstubAllGlobals());

const ask = (name: string, signal?: AbortSignal) => new Request(`http://server/v1/predictions/${name}`, { method: 'POST', body: name, signal });

test('what is computed takes turns, in order, and what nobody waits for gives up its turn', async () => {
  const open = new Map<string, () => void>();
  vi.stubGlobal('fetch', async (request: Request) => {
    const name = await request.text();
    return new Promise<Response>((resolve) => open.set(name, () => resolve(new Response(name))));
  });
  const leave = new AbortController();
  const asked = ['a', 'b', 'c', 'd', 'e'].map((name) => send(ask(name, name === 'd' ? leave.signal : undefined)));
  await vi.waitFor(() => expect([...open.keys()]).toEqual(['a', 'b', 'c']));
  leave.abort(new Error('nobody waits'));
  await expect(asked[3]).rejects.toThrow('nobody waits');
  open.get('b')!();
  expect(await (await asked[1]!).text()).toBe('b');
  await vi.waitFor(() => expect([...open.keys()]).toEqual(['a', 'b', 'c', 'e']));
  for (const name of ['a', 'c', 'e']) open.get(name)!();
  await Promise.all([asked[0], asked[2], asked[4]]);
});

test('a busy server is asked again when it says so, and any other refusal is an answer', async () => {
  const answers = [new Response('', { status: 503, headers: { 'Retry-After': '0' } }), new Response('', { status: 429, headers: { 'Retry-After': '0' } }), new Response('done')];
  vi.stubGlobal('fetch', async () => answers.shift());
  expect(await (await send(ask('x'))).text()).toBe('done');
  answers.push(new Response('stopping', { status: 503 }));
  expect((await send(ask('x'))).status).toBe(503);
});
