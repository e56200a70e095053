// What the page asks of the server, as queries. Predictions never change for
// the same workload, so they are kept for as long as the page is open.
import { keepPreviousData, QueryCache, QueryClient, useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { access } from './access';
import { type Analysis, answer, api, type Schemas, type Workload } from './client';
import { Problem } from './problem';
import { send } from './transport';

type Question = Schemas['Question'];

export function newQueryClient(): QueryClient {
  return new QueryClient({
    queryCache: new QueryCache({
      onError: (error) => {
        if (Problem.of(error).needsToken) access.refused();
      },
    }),
    defaultOptions: {
      queries: {
        retry: false, // transport.ts asks again when the server says so
        refetchOnWindowFocus: false,
        networkMode: 'always', // the server is mostly this machine, which needs no network
      },
    },
  });
}

const forever = { staleTime: Infinity, gcTime: 10 * 60_000 };

export interface Health {
  status: string;
  gpu_available: boolean;
  gpu_name: string | null;
  gpu_memory_total_gb: number | null;
  device: string;
}

/** useHealth asks now and then whether the server is there, and often while it is not. */
export function useHealth() {
  return useQuery({
    queryKey: ['health'],
    queryFn: async ({ signal }): Promise<Health> => {
      const response = await send(new Request('/health', { signal })).catch(() => {
        throw Problem.lost();
      });
      if (!response.ok) throw Problem.from(response.status, undefined);
      return response.json();
    },
    refetchInterval: (query) => (query.state.status === 'error' ? 1500 : 10_000),
  });
}

export function useModels() {
  return useQuery({ queryKey: ['models'], queryFn: ({ signal }) => answer(api.GET('/v1/models', { signal })), ...forever });
}

export function useCards() {
  return useQuery({ queryKey: ['gpus'], queryFn: ({ signal }) => answer(api.GET('/v1/gpus', { signal })), ...forever });
}

/** useWorkers looks at the fleet every few seconds while a page shows it. */
export function useWorkers() {
  return useQuery({
    queryKey: ['workers'],
    queryFn: ({ signal }) => answer(api.GET('/v1/workers', { signal })),
    refetchInterval: 5000,
  });
}

export function usePrediction(workload: Workload, enabled = true) {
  return useQuery({
    queryKey: ['prediction', workload],
    queryFn: ({ signal }) => answer(api.POST('/v1/predictions', { params: { query: { engine: 'predicted' } }, body: workload, signal })),
    placeholderData: keepPreviousData,
    enabled,
    ...forever,
  });
}

export function usePredictedAnalysis(question: Question, enabled = true) {
  return useQuery({
    queryKey: ['analysis', question],
    queryFn: ({ signal }) => answer(api.POST('/v1/predictions/analysis', { body: question, signal })),
    placeholderData: keepPreviousData,
    enabled,
    ...forever,
  });
}

export function useCurve(question: Question, enabled = true) {
  return useQuery({
    queryKey: ['curve', question],
    queryFn: ({ signal }) => answer(api.POST('/v1/predictions/curve', { body: question, signal })),
    placeholderData: keepPreviousData,
    enabled,
    ...forever,
  });
}

export interface HistoryFilter {
  q?: string;
  state?: Analysis['state'];
  engine?: Analysis['engine'];
}

/** useHistory lists analyses, newest first, page by page. */
export function useHistory({ state, ...filter }: HistoryFilter) {
  return useInfiniteQuery({
    queryKey: ['history', state, filter],
    queryFn: ({ signal, pageParam }) =>
      answer(api.GET('/v1/analyses', { params: { query: { ...filter, state: state && [state], after: pageParam, limit: 50, answers: true } }, signal })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next,
    placeholderData: keepPreviousData,
    refetchInterval: 5000,
  });
}
