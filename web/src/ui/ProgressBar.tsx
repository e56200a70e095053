interface Props {
  label: string;
  /** how much is done, undefined while that is not known */
  value?: number;
  max: number;
}

/** ProgressBar is how much of something is done, in the page's colours: browsers have their own. */
export function ProgressBar({ label, value, max }: Props) {
  return (
    <progress
      className="progress block h-1.5 w-full overflow-hidden rounded-full bg-line-strong"
      aria-label={label}
      value={value}
      max={max || 1}
    />
  );
}
