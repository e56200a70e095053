import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { lineOf, stateLine, type TerminalLine } from './events';
import type { Analysis, Schemas } from './client';

export const ended = (analysis: Analysis | undefined) =>
  analysis?.state === 'succeeded' || analysis?.state === 'failed' || analysis?.state === 'cancelled';

export interface Watched {
  analysis?: Analysis;
  lines: TerminalLine[];
  /** the stream broke; the browser tries again by itself */
  interrupted: boolean;
}

const nothing: Watched = { lines: [], interrupted: false };

/** useWatch follows an analysis over server-sent events until it has ended. */
export function useWatch(id: string | undefined): Watched {
  const [watched, setWatched] = useState<{ id?: string } & Watched>(nothing);
  const queries = useQueryClient();
  useEffect(() => {
    if (!id) return;
    const source = new EventSource(`/v1/analyses/${encodeURIComponent(id)}/events`);
    const update = (next: (now: Watched) => Partial<Watched>) =>
      setWatched((last) => {
        const now = last.id === id ? last : nothing;
        return { ...now, ...next(now), id };
      });
    const add = (line: TerminalLine, more: Partial<Watched> = {}) =>
      update(({ lines }) => ({ ...more, interrupted: false, lines: [...lines.filter(({ key }) => key !== line.key), line] }));
    source.addEventListener('analysis', (event: MessageEvent<string>) => {
      const analysis = JSON.parse(event.data) as Analysis;
      add(stateLine(analysis), { analysis });
      void queries.invalidateQueries({ queryKey: ['history'] });
      if (ended(analysis)) source.close(); // else the browser would connect again
    });
    source.addEventListener('progress', (event: MessageEvent<string>) =>
      add(lineOf(event.lastEventId, JSON.parse(event.data) as Schemas['Progress'])),
    );
    source.addEventListener('error', () => update(() => ({ interrupted: true })));
    return () => source.close();
  }, [id, queries]);
  return watched.id === id ? watched : nothing;
}
