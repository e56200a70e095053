import { useQueryClient } from '@tanstack/react-query';
import { LogOut, X } from 'lucide-react';
import { Dialog } from 'radix-ui';
import { type FormEvent, useState } from 'react';
import { access, useAccess } from '../api/access';
import { answer, api } from '../api/client';
import { Problem } from '../api/problem';
import { Button } from '../ui/Button';

/** LogIn asks for a token when the server wants one. The server keeps it in a cookie that scripts cannot read. */
export function LogIn() {
  const now = useAccess();
  const queries = useQueryClient();
  const [refusal, setRefusal] = useState('');

  async function submit(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    const token = String(new FormData(event.currentTarget).get('token') ?? '');
    try {
      await answer(api.POST('/v1/session', { body: { token } }));
      access.begin();
      setRefusal('');
      await queries.invalidateQueries();
    } catch (error) {
      setRefusal(Problem.of(error).message);
    }
  }

  function leave() {
    setRefusal('');
    access.decline();
  }

  return (
    <>
      {now === 'without' && (
        <p className="flex items-center justify-center gap-3 border-b border-line bg-raised px-4 py-2 text-sm">
          This server shows its answers to people with a token.
          <Button size="small" onClick={access.ask}>
            Log in
          </Button>
        </p>
      )}
      <Dialog.Root open={now === 'asking'} onOpenChange={(open) => !open && leave()}>
        <Dialog.Portal>
          <Dialog.Overlay className="fixed inset-0 z-40 bg-black/60" />
          <Dialog.Content className="fixed top-1/3 left-1/2 z-50 w-[min(26rem,calc(100vw-2rem))] -translate-x-1/2 rounded-lg border border-line bg-surface p-6">
            <Dialog.Title className="text-lg font-semibold">Log in</Dialog.Title>
            <Dialog.Description className="mt-1 text-sm text-muted">
              This server asks for a token. On its machine, <code className="font-mono">memorymark serve token create NAME</code> makes one.
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
              <div className="flex gap-2">
                <Button type="submit" look="primary" className="flex-1">
                  Log in
                </Button>
                <Button look="quiet" onClick={leave}>
                  Not now
                </Button>
              </div>
            </form>
            <Dialog.Close aria-label="Close" className="absolute top-4 right-4 rounded p-1 text-muted hover:text-text">
              <X size={16} aria-hidden />
            </Dialog.Close>
          </Dialog.Content>
        </Dialog.Portal>
      </Dialog.Root>
    </>
  );
}

/** LogOutButton ends the session, and nothing of what was seen in it stays. */
export function LogOutButton() {
  const queries = useQueryClient();
  if (useAccess() !== 'in') return null;
  async function leave() {
    const failed = await answer(api.DELETE('/v1/session')).catch(Problem.of);
    if (failed instanceof Problem) return; // the server does not answer, which the page says
    access.decline();
    await queries.resetQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'health' });
  }
  return (
    <button type="button" onClick={leave} aria-label="Log out" title="Log out" className="rounded p-2 text-muted hover:text-text">
      <LogOut size={18} aria-hidden />
    </button>
  );
}
