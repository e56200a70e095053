import type { Analysis } from '../api/client';

const looks: Record<Analysis['state'], [name: string, look: string]> = {
  queued: ['waiting', 'bg-warn-soft text-warn-text'],
  running: ['running', 'bg-raised text-info-text'],
  succeeded: ['done', 'bg-accent-soft text-accent-text'],
  failed: ['failed', 'bg-bad-soft text-bad-text'],
  cancelled: ['cancelled', 'bg-raised text-muted'],
};

export function StateBadge({ state }: { state: Analysis['state'] }) {
  const [name, look] = looks[state];
  return <span className={`rounded-full px-2.5 py-0.5 text-xs ${look}`}>{name}</span>;
}
