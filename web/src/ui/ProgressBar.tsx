interface Props {
  label: string;
  /** how much is done, undefined while that is not known */
  value?: number;
  max: number;
}

/** ProgressBar is how much of something is done. */
export function ProgressBar({ label, value, max }: Props) {
  return <progress className="block h-1.5 w-full accent-accent-text" aria-label={label} value={value} max={max || 1} />;
}
