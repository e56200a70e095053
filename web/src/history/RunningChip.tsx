import { useQuery } from '@tanstack/react-query';
import { Link } from 'wouter';
import { answer, api } from '../api/client';
import { count } from '../format';

/** RunningChip leads to what is running, from every page. */
export function RunningChip() {
  const running = useQuery({
    queryKey: ['history', 'running'],
    queryFn: ({ signal }) => answer(api.GET('/v1/analyses', { params: { query: { state: ['queued', 'running'], limit: 2 } }, signal })),
    refetchInterval: 5000,
    retry: false,
  });
  const { total = 0, analyses } = running.data ?? {};
  if (total === 0 || running.isError) return null;
  const only = total === 1 ? analyses?.[0] : undefined;
  return (
    <Link
      href={only ? `/history/${only.id}` : '/history'}
      className="inline-flex min-h-7 items-center gap-2 rounded-full border border-line-strong px-3 text-xs hover:bg-raised"
    >
      <span aria-hidden className="size-1.5 animate-pulse rounded-full bg-info motion-reduce:animate-none" />
      {only ? (only.state === 'queued' ? '1 waiting' : '1 running') : `${count(total)} running`}
    </Link>
  );
}
