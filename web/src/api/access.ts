// Whether this person is let in. Most servers ask for no token; one that does says so when it refuses the first request.
import { useSyncExternalStore } from 'react';

/**
 * Access is what is known of it: nothing was refused, a token is being asked for, the person wants none now, or
 * there is a session, which can be ended.
 */
export type Access = 'open' | 'asking' | 'without' | 'in';

// The session is a cookie that scripts cannot read; this remembers that there is one.
const key = 'memorymark.session';
const listeners = new Set<() => void>();
let now: Access = remembered() ? 'in' : 'open';

function set(next: Access) {
  if (next === now) return;
  now = next;
  remember(next === 'in');
  for (const listener of listeners) listener();
}

export const access = {
  /** refused asks for a token, unless the person said that there is none: pages ask the server every few seconds. */
  refused: () => {
    if (now !== 'without') set('asking');
  },
  ask: () => set('asking'),
  decline: () => set('without'),
  begin: () => set('in'),
};

export function useAccess(): Access {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => now,
  );
}

function remembered(): boolean {
  try {
    return localStorage.getItem(key) !== null;
  } catch {
    return false;
  }
}

function remember(session: boolean) {
  try {
    if (session) localStorage.setItem(key, 'yes');
    else localStorage.removeItem(key);
  } catch {
    // The cookie holds without it; only the button to log out is missing after a reload.
  }
}
