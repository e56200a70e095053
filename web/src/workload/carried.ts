// The question that one takes along from page to page, also over pages that are
// about something else. It lasts as long as the browser's tab.
import { useSyncExternalStore } from 'react';
import { addressOf, type Question, questionOf, workloadIn } from './address';

const key = 'memorymark.question';
const listeners = new Set<() => void>();
let last = stored();

function stored(): string {
  try {
    return sessionStorage.getItem(key) ?? '';
  } catch {
    return '';
  }
}

/** carry takes a question along. */
export function carry(question: Question) {
  const address = addressOf(question);
  if (address === last) return;
  last = address;
  try {
    sessionStorage.setItem(key, address);
  } catch {
    // It lasts until the page is loaded again, then.
  }
  for (const listener of listeners) listener();
}

/** useCarried is the question that was asked last, as addresses have it; '' before the first. */
export function useCarried(): string {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => last,
  );
}

/** carriedFrom is what a page's own address says, if it is about a workload, else what was asked last. */
export function carriedFrom(search: string, asked: string): string {
  return workloadIn(search) ? addressOf(questionOf(search)) : asked;
}
