import { type ReactNode, useId } from 'react';

interface Props {
  title: string;
  /** next to the title: where the figures come from, or what can be done */
  aside?: ReactNode;
  children: ReactNode;
  className?: string;
}

/** Panel is a titled part of a page. */
export function Panel({ title, aside, children, className = '' }: Props) {
  const id = useId();
  return (
    <section aria-labelledby={id} className={`min-w-0 rounded-lg border border-line bg-surface p-5 sm:p-6 ${className}`}>
      <div className="mb-4 flex flex-wrap items-baseline justify-between gap-x-4 gap-y-1">
        <h2 id={id} className="text-sm font-semibold tracking-wide">
          {title}
        </h2>
        {aside}
      </div>
      {children}
    </section>
  );
}
