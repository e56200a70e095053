import type { KeyboardEvent } from 'react';

/** walk moves a chart's cursor by the keyboard: the arrow, Home and End keys go from point to point, Escape leaves. */
export function walk(event: KeyboardEvent, points: number, at: number | undefined, setAt: (at: number | undefined) => void): void {
  const to = { ArrowRight: (at ?? -1) + 1, ArrowLeft: (at ?? points) - 1, Home: 0, End: points - 1 }[event.key];
  if (event.key === 'Escape') setAt(undefined);
  if (to === undefined) return;
  event.preventDefault();
  setAt(Math.min(points - 1, Math.max(0, to)));
}
