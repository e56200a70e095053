import { useState } from 'react';
import { Link } from 'wouter';
import { answer, api, type Schemas } from '../api/client';
import { useCards } from '../api/queries';
import { count, dollars, rate } from '../format';
import { Tabs } from '../ui/Tabs';
import { addressOf, type Question, without } from '../workload/address';
import { type ChoiceField, fields } from '../workload/fields';
import { type QuestionState, useQuestion } from '../workload/useQuestion';
import { ComparePage } from './ComparePage';
import { useEach } from './useEach';

type Row = Schemas['WithSettings'];
type Setting = Pick<Row, 'precision' | 'optimizer' | 'checkpointing'>;

const precisions = (fields.precision as ChoiceField).options;
const optimizers = (fields.optimizer as ChoiceField).options;
const compared = ['adamw', 'sgd-momentum', 'sgd'];
const settings: Setting[] = Object.keys(precisions).flatMap((precision) =>
  compared.flatMap((optimizer) => [false, true].map((checkpointing) => ({ precision, optimizer, checkpointing }))),
);
// What cards before Ampere do not have in hardware.
const newer = ['tf32', 'amp-bf16', 'bf16'];

/** settingsOn are the settings that a card can do; all of a card that is not known. */
export function settingsOn(card: Schemas['Card'] | undefined): Setting[] {
  if (!card || Number.parseFloat(card.compute_capability) >= 8) return settings;
  return settings.filter(({ precision }) => !newer.includes(precision));
}

interface Measure {
  name: string;
  of(row: Row): number | undefined;
  show(value: number): string;
  /** less is better */
  less?: boolean;
}

const measures: Record<string, Measure> = {
  batch: { name: 'Largest batch', of: (row) => row.optimal_batch_size || undefined, show: count },
  speed: { name: 'Samples/s', of: (row) => row.samples_per_second, show: rate },
  cost: { name: '$ a million samples', of: (row) => row.usd_per_million_samples, show: dollars, less: true },
};

/** SettingsPage is a workload with every combination of precision, optimizer and checkpointing. */
export default function SettingsPage() {
  const state = useQuestion();
  const [chosen, setChosen] = useState('batch');
  const measure = measures[chosen]!;
  const question = without(state.settled, 'batch', 'precision', 'optimizer', 'checkpointing');
  const cards = useCards().data?.gpus;
  const shown = settingsOn(cards?.find(({ id }) => id === question.workload?.gpu));
  const each = useEach(
    shown,
    (setting) => ['settings', setting, question],
    (setting, signal) => answer(api.POST('/v1/comparisons/settings', { body: body(question, setting), signal })),
  );
  return (
    <ComparePage
      title="Compare combinations"
      about="Precision, optimizer and checkpointing together. Speed and cost are at the recommended batch; click a combination to analyze it."
      state={state}
      without={['batch', 'precision', 'optimizer', 'checkpointing']}
      problem={each.problem}
      missing={each.missing}
      of={shown.length}
      accuracy={each.parts[0]?.accuracy}
    >
      <Tabs label="Shown" tabs={Object.entries(measures).map(([value, { name }]) => ({ value, name }))} value={chosen} onChange={setChosen} />
      <Grid shown={shown} rows={each.parts.flatMap((part) => part.settings ?? [])} measure={measure} state={state} />
    </ComparePage>
  );
}

function body(question: Question, { precision, optimizer, checkpointing }: Setting): Schemas['SettingsQuestion'] {
  const asked = { precisions: [precision], optimizers: [optimizer], checkpointing: [checkpointing] };
  return { ...question, ...(asked as Pick<Schemas['SettingsQuestion'], 'precisions' | 'optimizers' | 'checkpointing'>) };
}

function Grid({ shown, rows, measure, state }: { shown: Setting[]; rows: Row[]; measure: Measure; state: QuestionState }) {
  const values = rows.flatMap((row) => measure.of(row) ?? []);
  const best = measure.less ? Math.min(...values) : Math.max(...values);
  return (
    <div className="grid gap-4 sm:grid-cols-2 xl:grid-cols-1">
      <div className="hidden grid-cols-[8rem_repeat(6,minmax(0,1fr))] gap-2 text-xs text-muted xl:grid" aria-hidden>
        <span />
        {shown.slice(0, 6).map(({ optimizer, checkpointing }) => (
          <span key={`${optimizer} ${checkpointing}`}>{columnName(optimizer, checkpointing)}</span>
        ))}
      </div>
      {[...new Set(shown.map(({ precision }) => precision))].map((precision) => (
        <section key={precision} aria-label={precisions[precision]} className="grid content-start gap-2 xl:grid-cols-[8rem_repeat(6,minmax(0,1fr))]">
          <h2 className="self-center text-sm font-medium">{precisions[precision]}</h2>
          {shown
            .filter((setting) => setting.precision === precision)
            .map((setting) => (
              <Cell
                key={columnName(setting.optimizer, setting.checkpointing)}
                setting={setting}
                row={rows.find((row) => same(row, setting))}
                measure={measure}
                best={best}
                href={`/?${addressOf({ ...state.question, workload: { ...state.question.workload, ...(setting as object) } })}`}
              />
            ))}
        </section>
      ))}
    </div>
  );
}

interface CellProps {
  setting: Setting;
  row: Row | undefined;
  measure: Measure;
  best: number;
  href: string;
}

function Cell({ setting, row, measure, best, href }: CellProps) {
  const value = row && measure.of(row);
  const share = value ? (measure.less ? best / value : value / best) : 0;
  return (
    <Link
      href={href}
      title={row?.error}
      className={`relative flex items-baseline justify-between gap-2 overflow-hidden rounded border px-3 py-2.5 hover:border-line-strong xl:block ${value === best ? 'border-accent-text' : 'border-line'} bg-surface`}
    >
      <span aria-hidden className="absolute inset-x-0 bottom-0 h-1 bg-raised">
        <span className="block h-full bg-accent transition-[width] duration-300" style={{ width: `${share * 100}%` }} />
      </span>
      <span className="text-xs text-muted xl:sr-only">{columnName(setting.optimizer, setting.checkpointing)}</span>
      <span className={value ? 'font-semibold' : 'text-xs text-muted'}>{value ? measure.show(value) : row ? 'does not fit' : '…'}</span>
    </Link>
  );
}

function columnName(optimizer: string, checkpointing: boolean): string {
  return `${optimizers[optimizer]}${checkpointing ? ', checkpointing' : ''}`;
}

function same(a: Setting, b: Setting): boolean {
  return a.precision === b.precision && a.optimizer === b.optimizer && a.checkpointing === b.checkpointing;
}
