import { Popover } from 'radix-ui';
import type { ReactNode } from 'react';
import type { Schemas } from '../api/client';
import { count, share } from '../format';

type Errors = Schemas['Errors'];

interface Props {
  engine: string;
  /** how far predictions of this were off, where that is said here and not elsewhere on the page */
  errors?: Errors;
}

const dots: Record<string, string> = { measured: 'bg-accent', emulated: 'bg-info' };

/** Evidence says whether a figure was predicted, emulated or measured. With errors, a click tells how far such predictions were off. */
export function Evidence({ engine, errors }: Props) {
  const dot = dots[engine] ?? 'border border-info';
  if (!errors) return <Tag dot={dot}>{engine || 'predicted'}</Tag>;
  return (
    <Popover.Root>
      <Popover.Trigger className="inline-flex min-h-6 items-center rounded underline decoration-dotted underline-offset-4 hover:text-text">
        <Tag dot={dot}>
          {engine}, {statedError(errors)}
        </Tag>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          sideOffset={6}
          collisionPadding={16}
          aria-label="How far off such predictions were"
          className="z-40 max-w-80 rounded-lg border border-line-strong bg-surface p-4 text-xs shadow-2xl shadow-black/50"
        >
          {detail(errors)}
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}

function Tag({ dot, children }: { dot: string; children: ReactNode }) {
  return (
    <span className="inline-flex items-baseline gap-1.5 text-xs text-muted">
      <span aria-hidden className={`size-1.5 shrink-0 -translate-y-px rounded-full ${dot}`} />
      <span>{children}</span>
    </span>
  );
}

/** statedError is how far predictions were off, in a few words. */
export function statedError(errors: Errors): string {
  if (errors.exact === errors.cases) return `exact in ${count(errors.cases)} of ${count(errors.cases)}`;
  return `95 % within ${share(errors.percentile_95)}`;
}

function detail(errors: Errors): string {
  return (
    `Checked against ${count(errors.cases)} measurements of this architecture, with models of up to ${count(errors.most_parameters)} parameters: ` +
    `${count(errors.exact)} exact, ` +
    `half within ${share(errors.median)}, 95 % within ${share(errors.percentile_95)}, all from ${share(errors.lowest)} to ${share(errors.highest)}.`
  );
}
