import { ToggleGroup } from 'radix-ui';
import { useId } from 'react';

interface Props {
  label: string;
  options: [value: string, name: string][];
  chosen: string[];
  onChange(chosen: string[]): void;
}

/** AxisInput chooses values of an axis; one at least stays. */
export function AxisInput({ label, options, chosen, onChange }: Props) {
  const id = useId();
  return (
    <div>
      <span id={id} className="text-xs text-muted">
        {label}
      </span>
      <ToggleGroup.Root
        type="multiple"
        aria-labelledby={id}
        value={chosen}
        onValueChange={(next) => next.length > 0 && onChange(options.map(([value]) => value).filter((value) => next.includes(value)))}
        className="mt-1.5 flex flex-wrap gap-1.5"
      >
        {options.map(([value, name]) => (
          <ToggleGroup.Item
            key={value}
            value={value}
            className="rounded border border-line-strong px-2.5 py-1 text-xs text-muted hover:text-text data-[state=on]:border-accent-text data-[state=on]:bg-accent-soft data-[state=on]:text-accent-text"
          >
            {name}
          </ToggleGroup.Item>
        ))}
      </ToggleGroup.Root>
    </div>
  );
}
