// What the timeline asks of the server. A snapshot is named by its contents, so answers about one stay true.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { answer, api, type Schemas, type Workload } from '../api/client';
import type { Query } from './query';
import type { Range } from './range';
import type { ReplayQuery } from './replay';
import type { Window } from './window';

export type Snapshot = Schemas['Snapshot'];
export type DeviceInfo = Schemas['DeviceInfo'];
export type EventRow = Schemas['Event'];
export type SegmentRow = Schemas['Segment'];
export type Compare = Schemas['Compare'];
export type Replay = Schemas['Replay'];
export type Stretch = Schemas['Stretch'];
export type FlameRow = Schemas['FlameRow'];
export type Diff = Schemas['Diff'];
export type Entry = Schemas['StoredSnapshot'];

/** Recording is one device of a snapshot. */
export interface Recording {
  id: string;
  device: number;
}

const forever = { staleTime: Infinity, gcTime: 10 * 60_000 };

export function useSnapshots() {
  return useQuery({ queryKey: ['snapshots'], queryFn: ({ signal }) => answer(api.GET('/v1/snapshots', { signal })) });
}

export function useSnapshot(id: string) {
  return useQuery({
    queryKey: ['snapshot', id],
    queryFn: ({ signal }) => answer(api.GET('/v1/snapshots/{id}', { params: { path: { id } }, signal })),
    enabled: id !== '',
    ...forever,
  });
}

/** usePredicted is the snapshot of a workload's process, null for none. */
export function usePredicted(workload: Workload | null) {
  return useQuery({
    queryKey: ['predicted snapshot', workload],
    queryFn: ({ signal }) => answer(api.POST('/v1/predictions/snapshot', { body: workload!, signal })),
    enabled: workload !== null,
    ...forever,
  });
}

/** timelineUrl is where the worker gets a window from. */
export function timelineUrl({ id, device }: Recording, w: Window, detail: number, byStack: boolean): string {
  const query = new URLSearchParams({
    device: String(device),
    from: String(w.from),
    to: String(w.to),
    columns: String(Math.max(1, w.columns)),
    detail: String(detail),
    by_stack: String(byStack),
  });
  return `/v1/snapshots/${id}/timeline?${query}`;
}

export interface EventFilter {
  from: number;
  limit: number;
  action?: EventAction[];
  query?: Query | null;
  allocation?: number;
}

export type EventAction =
  'alloc' | 'free_requested' | 'free_completed' | 'segment_alloc' | 'segment_free' | 'segment_map' | 'segment_unmap' | 'snapshot' | 'oom';

export function useEvents(recording: Recording, filter: EventFilter | null) {
  return useQuery({
    queryKey: ['events', recording, filter],
    queryFn: ({ signal }) =>
      answer(api.GET('/v1/snapshots/{id}/events', { params: { path: { id: recording.id }, query: eventsQuery(recording, filter!) }, signal })),
    enabled: filter !== null && recording.id !== '',
    placeholderData: keepPreviousData,
    ...forever,
  });
}

function eventsQuery({ device }: Recording, { from, limit, action, query, allocation }: EventFilter) {
  const wanted = { device, from, limit, action, allocation };
  switch (query?.kind) {
    case 'size':
      return { ...wanted, min_bytes: query.min, ...(Number.isFinite(query.max) ? { max_bytes: query.max } : {}) };
    case 'address':
      return { ...wanted, address: Number(query.address) };
    case 'allocation':
      return { ...wanted, allocation: query.id };
    case 'frame':
      return { ...wanted, frame: query.text };
    default:
      return wanted;
  }
}

export function useSegments({ id, device }: Recording, event: number, enabled: boolean) {
  return useQuery({
    queryKey: ['segments', id, device, event],
    queryFn: ({ signal }) => answer(api.GET('/v1/snapshots/{id}/segments', { params: { path: { id }, query: { device, at: String(event) } }, signal })),
    placeholderData: keepPreviousData,
    enabled,
    ...forever,
  });
}

export function useReplay({ id, device }: Recording, asked: ReplayQuery | null) {
  return useQuery({
    queryKey: ['replay', id, device, asked],
    queryFn: ({ signal }) => answer(api.GET('/v1/snapshots/{id}/replay', { params: { path: { id }, query: { device, ...asked } }, signal })),
    enabled: asked !== null,
    placeholderData: keepPreviousData,
    ...forever,
  });
}

export function useCompare({ id, device }: Recording, other: string) {
  return useQuery({
    queryKey: ['compare', id, device, other],
    queryFn: ({ signal }) => answer(api.GET('/v1/snapshots/{id}/compare', { params: { path: { id }, query: { with: other, device, n: 50 } }, signal })),
    enabled: other !== '',
    ...forever,
  });
}

export function useFlame({ id, device }: Recording, at: string) {
  return useQuery({
    queryKey: ['flame', id, device, at],
    queryFn: ({ signal }) => answer(api.GET('/v1/snapshots/{id}/flame', { params: { path: { id }, query: { device, at } }, signal })),
    placeholderData: keepPreviousData,
    ...forever,
  });
}

export function useStretch({ id, device }: Recording, range: Range | null) {
  return useQuery({
    queryKey: ['stretch', id, device, range],
    queryFn: ({ signal }) => answer(api.GET('/v1/snapshots/{id}/stretch', { params: { path: { id }, query: { device, ...range } }, signal })),
    enabled: range !== null,
    placeholderData: keepPreviousData,
    ...forever,
  });
}

export function useDiff({ id, device }: Recording, other: string, at: 'peak' | 'end') {
  return useQuery({
    queryKey: ['diff', id, device, other, at],
    queryFn: ({ signal }) => answer(api.GET('/v1/snapshots/{id}/diff', { params: { path: { id }, query: { device, with: other, at, n: 40 } }, signal })),
    enabled: other !== '',
    placeholderData: keepPreviousData,
    ...forever,
  });
}

export function useTop({ id, device }: Recording, event: number | null, by: 'line' | 'stack' | 'size' | 'category') {
  return useQuery({
    queryKey: ['top', id, device, event, by],
    queryFn: ({ signal }) => answer(api.GET('/v1/snapshots/{id}/top', { params: { path: { id }, query: { device, at: String(event), by, n: 12 } }, signal })),
    placeholderData: keepPreviousData,
    enabled: event !== null && event >= 0,
    ...forever,
  });
}
