import { ChevronDown } from 'lucide-react';
import { Switch } from 'radix-ui';
import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { count } from '../format';
import { amountOf } from './amount';

interface Common {
  label: string;
  help?: string;
  /** what is wrong with the value */
  wrong?: string;
}

function Labelled({ label, help, wrong, id, children }: Common & { id: string; children: ReactNode }) {
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      <label htmlFor={id} title={help} className="text-xs text-muted">
        {label}
      </label>
      {children}
      {wrong && (
        <p id={`${id}-wrong`} className="text-xs text-bad-text">
          {wrong}
        </p>
      )}
    </div>
  );
}

const box = 'w-full rounded border bg-bg px-3 py-2 text-sm';
const edge = (wrong?: string) => (wrong ? 'border-bad' : 'border-line-strong');

interface SelectProps extends Common {
  value: string;
  options: Record<string, string>;
  onChange(value: string): void;
}

export function SelectInput({ value, options, onChange, ...common }: SelectProps) {
  const id = useId();
  return (
    <Labelled id={id} {...common}>
      <div className="relative">
        <select
          id={id}
          value={value}
          onChange={(event) => onChange(event.target.value)}
          className={`${box} ${edge(common.wrong)} appearance-none truncate pr-8`}
        >
          {!(value in options) && <option value={value}>{value}</option>}
          {Object.entries(options).map(([key, name]) => (
            <option key={key} value={key}>
              {name}
            </option>
          ))}
        </select>
        <ChevronDown size={14} aria-hidden className="pointer-events-none absolute top-1/2 right-3 -translate-y-1/2 text-faint" />
      </div>
    </Labelled>
  );
}

interface NumberProps extends Common {
  value: number | undefined;
  unit?: string;
  placeholder?: string;
  step?: number | 'any';
  min?: number;
  /** a number below this is wrong, and not handed on */
  least?: number;
  /** undefined when the field is empty */
  onChange(value: number | undefined): void;
}

/** NumberInput hands on every number as it is typed. What is no number yet stays in the field. */
export function NumberInput({ value, unit, placeholder, step = 1, min = 0, least, onChange, ...given }: NumberProps) {
  const id = useId();
  const [text, setText] = useState(String(value ?? ''));
  const input = useRef<HTMLInputElement>(null);
  const tooSmall = least !== undefined && text !== '' && Number(text) < least;
  const common = { ...given, wrong: tooSmall ? `It must be at least ${least}.` : given.wrong };
  useEffect(() => {
    setText((now) => {
      const writing = now === '' && document.activeElement === input.current; // it was emptied to write another
      return writing || (now !== '' && Number(now) === value) ? now : String(value ?? '');
    });
  }, [value]);
  return (
    <Labelled id={id} {...common}>
      <div className="relative">
        <input
          id={id}
          ref={input}
          type="number"
          inputMode="decimal"
          min={min}
          step={step}
          value={text}
          placeholder={placeholder}
          aria-invalid={common.wrong ? true : undefined}
          aria-describedby={common.wrong ? `${id}-wrong` : undefined}
          onChange={(event) => {
            setText(event.target.value);
            const number = Number(event.target.value);
            if (event.target.value === '') onChange(undefined);
            else if (Number.isFinite(number) && !(least !== undefined && number < least)) onChange(number);
          }}
          className={`${box} ${edge(common.wrong)} [appearance:textfield] placeholder:text-faint ${unit ? 'pr-16' : ''} [&::-webkit-inner-spin-button]:appearance-none`}
        />
        {unit && (
          <span aria-hidden className="pointer-events-none absolute inset-y-0 right-3 flex items-center text-xs text-faint">
            {unit}
          </span>
        )}
      </div>
    </Labelled>
  );
}

interface AmountProps extends Common {
  value: number | undefined;
  unit: string;
  placeholder: string;
  onChange(value: number | undefined): void;
}

/** AmountInput takes 1B, 300M or 1e9, and shows what it read. */
export function AmountInput({ value, unit, placeholder, onChange, ...given }: AmountProps) {
  const id = useId();
  const [written, setWritten] = useState('');
  const isUnread = written !== '' && amountOf(written) === undefined;
  const text = isUnread || amountOf(written) === value ? written : value === undefined ? '' : count(value); // it may be changed elsewhere
  const read = amountOf(text);
  const common = { ...given, wrong: text !== '' && read === undefined ? 'Write a number, such as 1B, 300M or 1e9.' : given.wrong };
  return (
    <Labelled id={id} {...common}>
      <input
        id={id}
        inputMode="text"
        autoComplete="off"
        value={text}
        placeholder={placeholder}
        aria-invalid={common.wrong ? true : undefined}
        aria-describedby={`${id}-${common.wrong ? 'wrong' : 'read'}`}
        onChange={(event) => {
          setWritten(event.target.value);
          const next = amountOf(event.target.value);
          if (next !== undefined || event.target.value === '') onChange(next);
        }}
        className={`${box} ${edge(common.wrong)} placeholder:text-faint`}
      />
      {read !== undefined && (
        <p id={`${id}-read`} className="text-xs text-muted">
          {count(read)} {unit}
        </p>
      )}
    </Labelled>
  );
}

interface TextProps extends Common {
  value: string;
  placeholder?: string;
  onChange(value: string): void;
}

export function TextInput({ value, placeholder, onChange, ...common }: TextProps) {
  const id = useId();
  return (
    <Labelled id={id} {...common}>
      <input
        id={id}
        type="search"
        value={value}
        placeholder={placeholder}
        onChange={(event) => onChange(event.target.value)}
        className={`${box} ${edge(common.wrong)} placeholder:text-faint`}
      />
    </Labelled>
  );
}

interface SwitchProps extends Common {
  value: boolean;
  onChange(value: boolean): void;
}

export function SwitchInput({ value, onChange, label, help }: SwitchProps) {
  const id = useId();
  return (
    <div className="flex items-center justify-between gap-3 py-1">
      <label htmlFor={id} title={help} className="text-sm">
        {label}
      </label>
      <Switch.Root
        id={id}
        checked={value}
        onCheckedChange={onChange}
        className="h-5 w-9 shrink-0 rounded-full border border-line-strong bg-bg transition-colors data-[state=checked]:border-accent data-[state=checked]:bg-accent"
      >
        <Switch.Thumb className="block size-3.5 translate-x-0.5 rounded-full bg-muted transition-transform data-[state=checked]:translate-x-[18px] data-[state=checked]:bg-on-accent" />
      </Switch.Root>
    </div>
  );
}
