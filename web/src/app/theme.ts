import { useSyncExternalStore } from 'react';

export type Theme = 'dark' | 'light';

const key = 'memorymark.theme';
const listeners = new Set<() => void>();

/** currentTheme is the theme of the document; public/theme.js has set it before the first paint. */
function currentTheme(): Theme {
  return document.documentElement.dataset.theme === 'light' ? 'light' : 'dark';
}

export function setTheme(theme: Theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem(key, theme);
  } catch {
    // It holds for this page, then.
  }
  for (const listener of listeners) listener();
}

/** followSystem changes the theme with the system's, unless one was chosen here. Paper is light. */
export function followSystem() {
  let onScreen = currentTheme();
  matchMedia('print').addEventListener('change', ({ matches }) => {
    if (matches) onScreen = currentTheme();
    document.documentElement.dataset.theme = matches ? 'light' : onScreen;
    for (const listener of listeners) listener();
  });
  matchMedia('(prefers-color-scheme: light)').addEventListener('change', ({ matches }) => {
    if (chosen()) return;
    document.documentElement.dataset.theme = matches ? 'light' : 'dark';
    for (const listener of listeners) listener();
  });
}

function chosen(): boolean {
  try {
    return localStorage.getItem(key) !== null;
  } catch {
    return false;
  }
}

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentTheme);
}
