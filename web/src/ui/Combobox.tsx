// A choice among many with a search, as the ARIA pattern of an editable combobox
// in a popover has it: the focus stays in the search, arrows move in the list.
import { ChevronsUpDown } from 'lucide-react';
import { Popover } from 'radix-ui';
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';

export interface Option {
  value: string;
  name: string;
  /** next to the name */
  note?: string;
  /** found by these words too */
  also?: string;
  group?: string;
}

interface Props {
  label: string;
  options: Option[];
  value: string | undefined;
  /** what is shown for the value */
  shown: string;
  onChoose(value: string): void;
  children?: ReactNode;
}

export function Combobox({ label, options, value, shown, onChoose, children }: Props) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <div className="flex flex-col gap-1.5">
      <span id={id} className="text-xs text-muted">
        {label}
      </span>
      <Popover.Root open={open} onOpenChange={setOpen}>
        <Popover.Trigger
          aria-labelledby={`${id} ${id}-value`}
          className="flex w-full items-center justify-between gap-2 rounded border border-line-strong bg-bg px-3 py-2 text-left text-sm"
        >
          <span id={`${id}-value`} className="truncate">
            {shown}
          </span>
          <ChevronsUpDown size={14} aria-hidden className="shrink-0 text-faint" />
        </Popover.Trigger>
        <Popover.Portal>
          <Popover.Content
            align="start"
            sideOffset={6}
            collisionPadding={16}
            aria-label={label}
            className="z-40 flex max-h-[min(26rem,var(--radix-popover-content-available-height))] w-[min(26rem,calc(100vw-2rem))] flex-col rounded-lg border border-line-strong bg-surface shadow-2xl shadow-black/50"
          >
            <Choices
              label={label}
              options={options}
              value={value}
              onChoose={(chosen) => {
                setOpen(false);
                onChoose(chosen);
              }}
            />
            {children && (
              // A click on what is offered below the list closes it too.
              <div className="border-t border-line p-2" onClick={() => setOpen(false)}>
                {children}
              </div>
            )}
          </Popover.Content>
        </Popover.Portal>
      </Popover.Root>
    </div>
  );
}

function Choices({ label, options, value, onChoose }: Pick<Props, 'label' | 'options' | 'value' | 'onChoose'>) {
  const [text, setText] = useState('');
  const found = search(options, text);
  const [at, setAt] = useState(() => Math.max(0, options.findIndex((option) => option.value === value)));
  const list = useRef<HTMLUListElement>(null);
  const id = useId();
  useEffect(() => {
    list.current?.querySelector(`[id="${id}-${at}"]`)?.scrollIntoView({ block: 'nearest' });
  }, [id, at]);

  function onKeyDown(event: KeyboardEvent) {
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: found.length - 1 }[event.key];
    const chosen = found[at];
    if (to !== undefined && found.length > 0) setAt(Math.min(found.length - 1, Math.max(0, to)));
    else if (event.key === 'Enter' && chosen) onChoose(chosen.value);
    else return;
    event.preventDefault();
  }

  return (
    <>
      <input
        role="combobox"
        aria-label={`Search: ${label}`}
        aria-expanded
        aria-controls={id}
        aria-activedescendant={found[at] && `${id}-${at}`}
        autoComplete="off"
        placeholder="Search"
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
        className="border-b border-line bg-transparent px-4 py-3 text-sm outline-none placeholder:text-faint"
      />
      <ul id={id} ref={list} role="listbox" aria-label={label} className="min-h-0 flex-1 overflow-y-auto p-1.5">
        {found.map((option, index) => (
          <Row
            key={option.value}
            id={`${id}-${index}`}
            option={option}
            heading={option.group !== found[index - 1]?.group ? option.group : undefined}
            active={index === at}
            onChoose={onChoose}
            onPoint={() => setAt(index)}
          />
        ))}
      </ul>
      {found.length === 0 && <p className="px-4 pb-4 text-sm text-muted">Nothing is called “{text}”.</p>}
    </>
  );
}

interface RowProps {
  id: string;
  option: Option;
  heading?: string;
  active: boolean;
  onChoose(value: string): void;
  onPoint(): void;
}

function Row({ id, option, heading, active, onChoose, onPoint }: RowProps) {
  return (
    <>
      {heading && (
        <li role="presentation" className="px-2.5 pt-3 pb-1 text-xs text-faint first:pt-1">
          {heading}
        </li>
      )}
      {/* The search has the keyboard. */}
      <li
        id={id}
        role="option"
        aria-selected={active}
        onClick={() => onChoose(option.value)}
        onMouseMove={onPoint}
        className={`flex cursor-pointer items-baseline justify-between gap-3 rounded px-2.5 py-1.5 text-sm ${active ? 'bg-raised' : ''}`}
      >
        <span className="truncate">{option.name}</span>
        <span className="shrink-0 text-xs text-muted">{option.note}</span>
      </li>
    </>
  );
}

/**
 * search finds the options that have every word of a text, however they are spelled: llama3 finds Llama 3.2. If there
 * are none, it finds those that have the first of its words.
 */
export function search(options: Option[], text: string): Option[] {
  const words = text.toLowerCase().split(/\s+/).map(plain);
  const known = options.map((option) => ({ option, text: plain(`${option.name} ${option.value} ${option.also ?? ''} ${option.group ?? ''}`) }));
  const exact = known.filter((each) => words.every((word) => each.text.includes(word)));
  const found = exact.length > 0 ? exact : known.filter((each) => words[0]!.length > 1 && each.text.includes(words[0]!.replace(/\d+$/, '') || words[0]!));
  return found.map(({ option }) => (exact.length > 0 ? option : { ...option, group: `Nothing is called “${text.trim()}”; similar` }));
}

// plain is text without what people leave out: spaces and punctuation.
const plain = (text: string) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');
