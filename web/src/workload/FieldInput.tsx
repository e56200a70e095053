import type { Card, Workload } from '../api/client';
import { NumberInput, SelectInput, SwitchInput } from '../ui/Inputs';
import { rankOf } from './describe';
import { type FieldKey, fields } from './fields';
import { hasBF16, newer } from './methods';
import type { QuestionState } from './useQuestion';

interface Props {
  name: FieldKey;
  workload: Workload;
  card: Card | undefined;
  wrong: string | undefined;
  onChange: QuestionState['change'];
}

/** FieldInput is a key of a workload to be set. */
export function FieldInput({ name, workload, card, wrong, onChange }: Props) {
  const field = fields[name];
  const value = workload[name] ?? field.initial;
  const common = { label: field.label, help: field.help, wrong };
  if (name === 'adapter') return <RankInput {...common} workload={workload} onChange={onChange} />;
  switch (field.kind) {
    case 'choice':
      return <SelectInput {...common} value={textOf(value)} options={name === 'precision' ? precisionsOn(card, field.options) : field.options} onChange={(next) => onChange({ [name]: next })} />;
    case 'switch':
      return <SwitchInput {...common} value={value === true} onChange={(next) => onChange({ [name]: next })} />;
    default:
      return (
        <NumberInput {...common} value={Number(value)} unit={field.unit} min={1} onChange={(next) => onChange({ [name]: next }, 'typing')} />
      );
  }
}

// A rank of 0 is no adapter. The other settings of one that came from a file or a plan stay.
function RankInput({ workload, onChange, ...common }: { label: string; help: string; wrong?: string; workload: Workload; onChange: QuestionState['change'] }) {
  const { adapter } = workload;
  const set = (rank: number | undefined) => {
    if (!rank) return onChange({ adapter: undefined, quantize: undefined }, 'typing'); // only frozen weights are quantized
    onChange({ adapter: typeof adapter === 'object' ? { ...adapter, rank } : { kind: 'lora', rank, targets: 'all-linear' } }, 'typing'); // PEFT knows the usual targets of few models
  };
  return <NumberInput {...common} value={rankOf(workload) || undefined} placeholder="no adapter" onChange={set} />;
}

function precisionsOn(card: Card | undefined, options: Record<string, string>): Record<string, string> {
  if (hasBF16(card)) return options;
  return Object.fromEntries(Object.entries(options).filter(([name]) => !newer.includes(name)));
}

function textOf(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
