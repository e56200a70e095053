import { useEffect, useRef, useState } from 'react';
import { Problem } from '../api/problem';
import { Button } from '../ui/Button';
import { formatAddress, formatBytes, formatCount, formatMicros } from './format';
import { allocationOf, madeBy } from './frame';
import { type EventAction, type EventRow, type Recording, useEvents } from './queries';
import type { Query } from './query';
import type { Under } from './scene';
import type { Stage } from './stage';

interface Props {
  recording: Recording;
  total: number;
  cursor: number;
  query: Query | null; // of the search above
  stage: Stage;
  onSelect(under: Under | null): void;
}

const pageSize = 100;

const actions: Record<string, EventAction[] | undefined> = {
  'all events': undefined,
  allocations: ['alloc'],
  frees: ['free_requested', 'free_completed'],
  segments: ['segment_alloc', 'segment_free', 'segment_map', 'segment_unmap'],
  'out of memory': ['oom'],
};

/**
 * EventList pages through the events by their number: a recording can have millions, and a browser cannot hold
 * one row for each. It follows the cursor unless something is being filtered.
 */
export function EventList({ recording, total, cursor, query, stage, onSelect }: Props) {
  const [kind, setKind] = useState('all events');
  const [searching, setSearching] = useState(false);
  const filtered = kind !== 'all events' || (searching && query !== null);
  // Where one has paged to. Another filter starts from the first page, and so does a cursor that was moved.
  const place = filtered ? `${kind} ${searching} ${JSON.stringify(query)}` : `at ${cursor}`;
  const [paged, setPaged] = useState({ place: '', starts: [0] });
  const starts = paged.place === place ? paged.starts : [filtered ? 0 : pageOf(cursor)];
  const from = starts.at(-1)!;

  const page = useEvents(recording, { from, limit: pageSize, action: actions[kind], query: searching ? query : null });
  const next = filtered ? page.data?.next : from + pageSize < total ? from + pageSize : undefined;
  const before = filtered ? starts.at(-2) : from > 0 ? Math.max(0, from - pageSize) : undefined;
  const forward = () => setPaged({ place, starts: [...starts, next!] });
  const back = () => setPaged({ place, starts: filtered ? starts.slice(0, -1) : [before!] });
  const choose = (row: EventRow) => {
    stage.goTo(row.event);
    onSelect(allocationOf(row));
  };
  return (
    <section aria-label="Events">
      <div className="flex flex-wrap items-center gap-x-4 gap-y-2 text-sm">
        <label className="flex items-center gap-2 text-muted">
          Show
          <select className="rounded border border-line-strong bg-bg px-2 py-1 text-text" value={kind} onChange={(event) => setKind(event.target.value)}>
            {Object.keys(actions).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <label className={`flex items-center gap-2 ${query ? 'text-text' : 'text-muted'}`}>
          <input type="checkbox" className="accent-accent-text" checked={searching} onChange={(event) => setSearching(event.target.checked)} />
          only what the search finds
        </label>
        <GoTo total={total} onGo={(event) => stage.goTo(event)} />
        <div className="ml-auto flex items-center gap-2">
          <Button size="small" disabled={before === undefined} onClick={back}>
            Earlier
          </Button>
          <Button size="small" disabled={next === undefined} onClick={forward}>
            Later
          </Button>
        </div>
      </div>
      {page.isError && <p className="mt-3 text-sm text-bad-text">{Problem.of(page.error).message}</p>}
      {page.data?.events.length === 0 && <p className="mt-3 text-sm text-muted">No events match.</p>}
      <Rows rows={page.data?.events ?? []} cursor={cursor} onChoose={choose} faded={page.isPlaceholderData} />
    </section>
  );
}

function pageOf(event: number): number {
  return Math.floor(Math.max(0, event) / pageSize) * pageSize;
}

function GoTo({ total, onGo }: { total: number; onGo(event: number): void }) {
  return (
    <form
      className="flex items-center gap-2"
      onSubmit={(event) => {
        event.preventDefault();
        onGo(Number(new FormData(event.currentTarget).get('event')));
      }}
    >
      <label className="flex items-center gap-2 text-muted">
        Go to event
        <input name="event" type="number" min={0} max={total - 1} required className="w-28 rounded border border-line-strong bg-bg px-2 py-1 text-text" />
      </label>
      <span className="text-xs text-muted">of {formatCount(total)}</span>
    </form>
  );
}

interface RowsProps {
  rows: EventRow[];
  cursor: number;
  faded: boolean;
  onChoose(row: EventRow): void;
}

/** Rows is a list of which one is the cursor's; the arrow keys go through it. */
function Rows({ rows, cursor, faded, onChoose }: RowsProps) {
  const list = useRef<HTMLDivElement>(null);
  const at = rows.findIndex((row) => row.event === cursor);
  useEffect(() => {
    const row = list.current?.children[at];
    if (list.current && row instanceof HTMLElement) keepInSight(list.current, row);
  }, [at]);
  const step = (by: number) => {
    const row = rows[Math.min(Math.max((at < 0 ? -1 : at) + by, 0), rows.length - 1)]!;
    if (row) onChoose(row);
  };
  return (
    <div
      ref={list}
      role="listbox"
      aria-label="Events of this page"
      aria-activedescendant={at < 0 ? undefined : `event-${cursor}`}
      tabIndex={0}
      data-own-keys
      onKeyDown={(event) => {
        if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
        event.preventDefault();
        step(event.key === 'ArrowDown' ? 1 : -1);
      }}
      className={`relative mt-3 h-96 overflow-auto rounded border border-line bg-bg text-xs ${faded ? 'opacity-60' : ''}`}
    >
      {rows.map((row) => (
        // The keys of a list box are those of the list.
        // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
        <div
          key={row.event}
          id={`event-${row.event}`}
          role="option"
          aria-selected={row.event === cursor}
          tabIndex={-1}
          onClick={() => onChoose(row)}
          className="grid min-w-[44rem] cursor-pointer grid-cols-[5.5rem_8rem_7rem_6rem_9rem_minmax(0,1fr)] gap-3 px-3 py-1 hover:bg-raised aria-selected:bg-accent-soft"
        >
          <span className="text-right font-mono text-muted">{formatCount(row.event)}</span>
          <span className={row.action === 'oom' ? 'text-bad-text' : ''}>{row.action}</span>
          <span className="text-right font-mono">{formatBytes(row.bytes)}</span>
          <span className="text-right font-mono text-muted">{row.elapsed_us === undefined ? '' : formatMicros(row.elapsed_us)}</span>
          <span className="font-mono text-muted">{row.address === undefined ? '' : formatAddress(row.address)}</span>
          <span className="truncate font-mono text-muted">
            {madeBy(row)}
          </span>
        </div>
      ))}
    </div>
  );
}

/** keepInSight scrolls the list, and not the page as scrollIntoView would. */
function keepInSight(list: HTMLElement, row: HTMLElement) {
  const { offsetTop: top, offsetHeight: height } = row;
  if (top < list.scrollTop || top + height > list.scrollTop + list.clientHeight) list.scrollTop = top - list.clientHeight / 2;
}
