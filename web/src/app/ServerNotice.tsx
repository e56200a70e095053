import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useHealth } from '../api/queries';

/** ServerNotice tells when the server is lost, and asks everything again when it is back. */
export function ServerNotice() {
  const health = useHealth();
  const queries = useQueryClient();
  const lost = health.isError;
  const wasLost = useRef(false);
  useEffect(() => {
    if (wasLost.current && !lost) void queries.invalidateQueries({ predicate: (query) => query.queryKey[0] !== 'health' });
    wasLost.current = lost;
  }, [lost, queries]);
  return (
    <div role="status" aria-live="polite">
      {lost && (
        <p className="border-b border-warn/40 bg-warn-soft px-4 py-2 text-center text-sm text-warn-text">
          The server does not answer. Start it again with <code className="font-mono">memorymark serve</code>; this page reconnects by itself.
        </p>
      )}
    </div>
  );
}
