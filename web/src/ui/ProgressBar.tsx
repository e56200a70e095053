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
      className="block h-1.5 w-full appearance-none overflow-hidden rounded-full border-0 bg-line-strong indeterminate:animate-pulse motion-reduce:animate-none [&::-moz-progress-bar]:bg-accent [&::-webkit-progress-bar]:bg-line-strong [&::-webkit-progress-value]:bg-accent"
      aria-label={label}
      value={value}
      max={max || 1}
    />
  );
}
