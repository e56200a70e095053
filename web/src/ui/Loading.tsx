/** Loading says what is on its way. It appears late: most answers are faster than a person can read. */
export function Loading({ what }: { what: string }) {
  return (
    <p role="status" className="animate-[appear_200ms_300ms_both] py-12 text-center text-sm text-muted">
      Loading {what}…
    </p>
  );
}

/** Skeleton holds the place of something that is being computed. */
export function Skeleton({ className = '' }: { className?: string }) {
  return <div aria-hidden className={`animate-pulse rounded bg-raised ${className}`} />;
}
