import type { Schemas } from '../api/client';
import { count, share } from '../format';

type Errors = Schemas['Errors'];

interface Props {
  engine: string;
  /** how far predictions of this were off */
  errors?: Errors;
}

/** Evidence says whether a figure was predicted, emulated or measured, and how far such predictions were off. */
export function Evidence({ engine, errors }: Props) {
  if (engine === 'measured') {
    return (
      <Tag dot="bg-accent" title="Real steps on a real GPU.">
        measured
      </Tag>
    );
  }
  if (engine === 'emulated') {
    return (
      <Tag dot="bg-info" title="Real PyTorch on an emulated GPU.">
        emulated
      </Tag>
    );
  }
  return (
    <Tag dot="border border-info" title={detail(errors)}>
      predicted{errors ? `, ${statedError(errors)}` : ''}
    </Tag>
  );
}

function Tag({ dot, title, children }: { dot: string; title: string; children: React.ReactNode }) {
  return (
    <span title={title} className="inline-flex items-baseline gap-1.5 text-xs text-muted">
      <span aria-hidden className={`size-1.5 shrink-0 -translate-y-px rounded-full ${dot}`} />
      {children}
    </span>
  );
}

/** statedError is how far predictions were off, in a few words. */
export function statedError(errors: Errors): string {
  if (errors.exact === errors.cases) return `exact in ${count(errors.cases)} of ${count(errors.cases)}`;
  return `95 % within ${share(errors.percentile_95)}`;
}

function detail(errors: Errors | undefined): string {
  if (!errors) return 'Predicted. This architecture has not been measured, so the accuracy is unknown.';
  return (
    `Checked against ${count(errors.cases)} measurements of this architecture, with models of up to ${count(errors.most_parameters)} parameters: ` +
    `${count(errors.exact)} exact, ` +
    `half within ${share(errors.median)}, 95 % within ${share(errors.percentile_95)}, all from ${share(errors.lowest)} to ${share(errors.highest)}.`
  );
}
