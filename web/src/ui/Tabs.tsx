import { ToggleGroup } from 'radix-ui';

interface Props {
  label: string;
  tabs: { value: string; name: string }[];
  value: string;
  onChange(value: string): void;
}

/** Tabs chooses one of a few ways to look at the same thing. */
export function Tabs({ label, tabs, value, onChange }: Props) {
  return (
    <ToggleGroup.Root
      type="single"
      aria-label={label}
      value={value}
      onValueChange={(next) => next && onChange(next)}
      className="inline-flex max-w-full flex-wrap self-start gap-1 rounded-md bg-raised p-1"
    >
      {tabs.map((tab) => (
        <ToggleGroup.Item
          key={tab.value}
          value={tab.value}
          className="rounded px-3 py-1 text-xs text-muted transition-colors hover:text-text data-[state=on]:bg-surface data-[state=on]:text-text"
        >
          {tab.name}
        </ToggleGroup.Item>
      ))}
    </ToggleGroup.Root>
  );
}
