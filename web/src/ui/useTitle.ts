import { useEffect } from 'react';

/** useTitle names the window after what it shows. */
export function useTitle(title: string) {
  useEffect(() => {
    document.title = `${title} · MemoryMark`;
    return () => {
      document.title = 'MemoryMark';
    };
  }, [title]);
}
