import { useSyncExternalStore } from 'react';

export type Theme = 'dark' | 'light';

const key = 'memorymark.theme';
const listeners = new Set<() => void>();

/** currentTheme is the theme of the document; public/theme.js has set it before the first paint. */
export function currentTheme(): Theme {
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

export function useTheme(): Theme {
  return useSyncExternalStore((listener) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, currentTheme);
}
