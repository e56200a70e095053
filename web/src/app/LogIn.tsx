import { useQueryClient } from '@tanstack/react-query';
import { Dialog } from 'radix-ui';
import { type FormEvent, useState, useSyncExternalStore } from 'react';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { tokenWanted } from '../api/queries';
import { Button } from '../ui/Button';

/** LogIn asks for a token when the server wants one. The server keeps it in a cookie that scripts cannot read. */
export function LogIn() {
  const wanted = useSyncExternalStore(tokenWanted.subscribe, tokenWanted.get);
  const queries = useQueryClient();
  const [refusal, setRefusal] = useState('');

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get('token') ?? '');
    try {
      await answer(api.POST('/v1/session', { body: { token } }));
      tokenWanted.set(false);
      setRefusal('');
      await queries.invalidateQueries();
    } catch (error) {
      setRefusal(Problem.of(error).message);
    }
  }

  return (
    <Dialog.Root open={wanted} onOpenChange={(open) => tokenWanted.set(open)}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-black/60" />
        <Dialog.Content className="fixed top-1/3 left-1/2 z-50 w-[min(26rem,calc(100vw-2rem))] -translate-x-1/2 rounded-lg border border-line bg-surface p-6">
          <Dialog.Title className="text-lg font-semibold">Log in</Dialog.Title>
          <Dialog.Description className="mt-1 text-sm text-muted">
            This server asks for a token. On its machine, <code className="font-mono">memorymark token create NAME</code> makes one.
          </Dialog.Description>
          <form onSubmit={submit} className="mt-4 flex flex-col gap-3">
            <label className="flex flex-col gap-1.5 text-sm">
              <span className="text-muted">Token</span>
              <input
                name="token"
                type="password"
                required
                autoComplete="current-password"
                className="rounded border border-line-strong bg-bg px-3 py-2 font-mono"
              />
            </label>
            {refusal && (
              <p role="alert" className="text-sm text-bad-text">
                {refusal}
              </p>
            )}
            <Button type="submit" look="primary">
              Log in
            </Button>
          </form>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
