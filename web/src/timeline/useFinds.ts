import { useEffect, useEffectEvent, useMemo, useRef, useState } from 'react';
import { Problem } from '../api/problem';
import { allocationOf } from './frame';
import { type EventRow, type Recording, useEvents } from './queries';
import { parseQuery, type Query } from './query';
import type { Under } from './scene';
import type { Stage } from './stage';

/** Finds is a search: what was typed, the allocations that the server found, and which of them is looked at. */
export interface Finds {
  text: string;
  setText(text: string): void;
  settled: string; // what was typed, once typing has paused
  query: Query | null;
  rows: EventRow[];
  more: boolean; // there are more than were fetched
  at: number; // index into rows, -1 before the first
  searching: boolean; // rows are not yet those of the text
  /** go goes to the next match or the one before, once the search has ended. */
  go(by: number): void;
  problem: string;
}

const most = 1000;
const typingMillis = 150;

/** useFinds searches while one types, marks what it found on the stage, and selects what one goes to. */
export function useFinds(stage: Stage, recording: Recording, events: number, searched: string, onSelect: (under: Under | null) => void): Finds {
  const [text, setText] = useState(searched);
  const settled = useSettled(text, typingMillis);
  const query = useMemo(() => parseQuery(settled), [settled]);
  const [looked, setLooked] = useState<{ query: Query | null; at: number }>({ query: null, at: -1 });
  const at = looked.query === query ? looked.at : -1; // another search begins before its first
  const answer = useEvents(recording, query && events > 0 ? { from: 0, limit: most, action: ['alloc'], query } : null);
  const rows = useMemo(() => (query && !answer.isPlaceholderData ? (answer.data?.events ?? []) : []), [query, answer.data, answer.isPlaceholderData]);

  const more = answer.data?.next !== undefined;
  const searching = text !== settled || (query !== null && events > 0 && (answer.isPending || answer.isPlaceholderData));
  const wanted = useRef(0); // where to go when the search has ended

  useEffect(() => {
    const ids = query?.kind === 'address' ? rows.flatMap((row) => row.allocation ?? []) : [];
    stage.setEmphasis({ query: settled, atAddress: ids });
    stage.setMarks({ found: more ? [] : rows.map((row) => row.event + 1) }); // the first of many would look like all
  }, [stage, settled, query, rows, more]);

  const go = (by: number) => {
    wanted.current = searching ? by : 0;
    if (searching || rows.length === 0) return;
    const next = at < 0 ? nearest(rows, stage.state.cursor ?? 0, by) : (at + by + rows.length) % rows.length;
    setLooked({ query, at: next });
    stage.goTo(rows[next]!.event);
    onSelect(allocationOf(rows[next]!));
  };
  const ended = useEffectEvent(() => wanted.current && go(wanted.current));
  useEffect(() => {
    if (!searching) ended();
  }, [searching]);
  return { text, setText, settled, query, rows, more, at, searching, go, problem: answer.isError ? Problem.of(answer.error).message : '' };
}

/** nearest is the first match from an event on, or the last before it. */
function nearest(rows: EventRow[], event: number, by: number): number {
  const after = rows.findIndex((row) => row.event >= event);
  if (by > 0) return Math.max(after, 0);
  return (after < 0 ? rows.length : after) === 0 ? rows.length - 1 : (after < 0 ? rows.length : after) - 1;
}

/** useSettled is a value once it has not changed for a while. */
function useSettled<T>(value: T, millis: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), millis);
    return () => clearTimeout(timer);
  }, [value, millis]);
  return settled;
}
