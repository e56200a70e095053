import type { ReactNode } from 'react';
import { useTitle } from './useTitle';

/** PageTitle heads a page, and the window too. */
export function PageTitle({ title, children }: { title: string; children?: ReactNode }) {
  useTitle(title);
  return (
    <div className="mb-6">
      <h1 className="text-2xl font-semibold tracking-tight">{title}</h1>
      {children && <p className="mt-1 max-w-prose text-sm text-muted">{children}</p>}
    </div>
  );
}
