import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { lineOf, stateLine, type TerminalLine } from './events';
import { type Analysis, answer, api, type Schemas } from './client';
import { Problem } from './problem';
import { listen } from './transport';

export const ended = (analysis: Analysis | undefined) =>
  analysis?.state === 'succeeded' || analysis?.state === 'failed' || analysis?.state === 'cancelled';

export interface Watched {
  analysis?: Analysis;
  lines: TerminalLine[];
  /** the stream broke and is begun again */
  interrupted: boolean;
  /** the server does not know it */
  gone: boolean;
}

const nothing: Watched = { lines: [], interrupted: false, gone: false };
const againMillis = 3000;

/** useWatch follows an analysis over server-sent events until it has ended. */
export function useWatch(id: string | undefined): Watched {
  const [watched, setWatched] = useState<{ id?: string } & Watched>(nothing);
  const queries = useQueryClient();
  useEffect(() => {
    if (!id) return;
    const update = (next: (now: Watched) => Partial<Watched>) =>
      setWatched((last) => {
        const now = last.id === id ? last : nothing;
        return { ...now, ...next(now), id };
      });
    const add = (line: TerminalLine, more: Partial<Watched> = {}) =>
      update(({ lines }) => ({ ...more, interrupted: false, lines: [...lines.filter(({ key }) => key !== line.key), line] }));
    return follow(id, {
      analysis: (analysis) => {
        add(stateLine(analysis), { analysis });
        void queries.invalidateQueries({ queryKey: ['history'] });
      },
      progress: (event, progress) => add(lineOf(event, progress)),
      interrupted: () => update(() => ({ interrupted: true })),
      gone: () => update(() => ({ gone: true })),
    });
  }, [id, queries]);
  return watched.id === id ? watched : nothing;
}

interface Told {
  analysis(analysis: Analysis): void;
  progress(event: string, progress: Schemas['Progress']): void;
  interrupted(): void;
  gone(): void;
}

/**
 * follow tells what happens to an analysis, from its beginning; it returns how to stop. A connection that breaks is
 * made again by the browser. One that is refused, as by a server that starts or wants a token, is not: that is done here.
 */
function follow(id: string, told: Told): () => void {
  let source: EventSource;
  let timer = 0;
  let stopped = false;
  const begin = () => {
    source = listen(`/v1/analyses/${encodeURIComponent(id)}/events`);
    source.addEventListener('analysis', (event: MessageEvent<string>) => {
      const analysis = JSON.parse(event.data) as Analysis;
      told.analysis(analysis);
      if (ended(analysis)) source.close(); // else the browser would connect again
    });
    source.addEventListener('progress', (event: MessageEvent<string>) => told.progress(event.lastEventId, JSON.parse(event.data) as Schemas['Progress']));
    source.addEventListener('error', () => {
      told.interrupted();
      if (source.readyState === EventSource.CLOSED) void refused();
    });
  };
  const refused = async () => {
    const why = await answer(api.GET('/v1/analyses/{id}', { params: { path: { id } } })).catch(Problem.of);
    if (stopped) return;
    if (why instanceof Problem && why.status === 404) return told.gone();
    timer = window.setTimeout(begin, againMillis);
  };
  begin();
  return () => {
    stopped = true;
    clearTimeout(timer);
    source.close();
  };
}
