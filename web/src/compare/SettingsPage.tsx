import { Fragment, useState } from 'react';
import { Link } from 'wouter';
import { answer, api, type Schemas, type Workload } from '../api/client';
import { useCards, useModels } from '../api/queries';
import { bytes, count, dollars, rate } from '../format';
import { Tabs } from '../ui/Tabs';
import { addressOf, type Question, without } from '../workload/address';
import { type ChoiceField, fields } from '../workload/fields';
import { hasBF16, methods, newer } from '../workload/methods';
import { canCheckpoint, cardOf } from '../workload/subject';
import { type QuestionState, useQuestion } from '../workload/useQuestion';
import { ComparePage } from './ComparePage';
import { useEach } from './useEach';

type Row = Schemas['WithSettings'];
type Setting = Pick<Workload, 'precision' | 'checkpointing' | 'optimizer' | 'adapter' | 'quantize'>;

const precisions = (fields.precision as ChoiceField).options;

/** The columns: what is trained, and what steps it. */
const { LoRA, QLoRA } = methods;
const columns: Record<string, Setting> = {
  AdamW: { optimizer: 'adamw' },
  'SGD with momentum': { optimizer: 'sgd-momentum' },
  SGD: { optimizer: 'sgd' },
  LoRA: { optimizer: 'adamw', adapter: LoRA.set.adapter },
  QLoRA: { optimizer: QLoRA.set.optimizer, adapter: QLoRA.set.adapter, quantize: QLoRA.set.quantize },
};

interface Cell {
  column: string;
  setting: Setting;
}

/** cellsOn are the combinations that a card can do; all of a card that is not known. */
export function cellsOn(card: Schemas['Card'] | undefined, checkpointing = true): Cell[] {
  const known = Object.keys(precisions).filter((precision) => hasBF16(card) || !newer.includes(precision));
  return known.flatMap((precision) =>
    [false, ...(checkpointing ? [true] : [])].flatMap((on) =>
      Object.entries(columns).map(([column, set]) => ({ column, setting: { precision: precision as Setting['precision'], ...set, checkpointing: on } })),
    ),
  );
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

const varied = ['batch', 'precision', 'optimizer', 'checkpointing', 'adapter', 'quantize'] as const;

/** SettingsPage is a workload with every combination of precision, checkpointing, and what is trained. */
export default function SettingsPage() {
  const state = useQuestion();
  const [chosen, setChosen] = useState('batch');
  const measure = measures[chosen]!;
  const question = without(state.settled, ...varied);
  const models = useModels().data?.models ?? [];
  const shown = cellsOn(cardOf(question.workload, useCards().data), canCheckpoint(question.workload, models));
  const each = useEach(
    shown,
    (cell) => ['settings', cell, question],
    async ({ setting }, signal) => answer(api.POST('/v1/comparisons/settings', { body: body(question, setting), signal })),
  );
  return (
    <ComparePage
      title="Compare combinations"
      about="What is trained, with which optimizer, precision and checkpointing. Speed and cost are at the recommended batch; click a combination to analyze it."
      state={state}
      without={[...varied]}
      problem={each.problem}
      missing={each.missing}
      of={shown.length}
      accuracy={each.parts[0]?.accuracy}
    >
      <Tabs label="Shown" tabs={Object.entries(measures).map(([value, { name }]) => ({ value, name }))} value={chosen} onChange={setChosen} />
      <Grid cells={shown} rows={each.answers.map((found) => found?.settings?.[0])} measure={measure} state={state} />
    </ComparePage>
  );
}

function body({ workload, ...beside }: Question, { precision, optimizer, checkpointing, ...method }: Setting) {
  const asked = { precisions: [precision], optimizers: [optimizer], checkpointing: [checkpointing] };
  return { ...beside, workload: { ...workload, ...method }, ...asked } as Schemas['SettingsQuestion'];
}

interface GridProps {
  cells: Cell[];
  /** what was found of each cell, so far */
  rows: (Row | undefined)[];
  measure: Measure;
  state: QuestionState;
}

const tracks = 'xl:grid-cols-[8rem_repeat(5,minmax(0,1fr))]';

function Grid({ cells, rows, measure, state: { question } }: GridProps) {
  const values = rows.flatMap((row) => (row && measure.of(row)) ?? []);
  const best = measure.less ? Math.min(...values) : Math.max(...values);
  return (
    <div className="grid gap-4 sm:grid-cols-2 xl:grid-cols-1">
      <div className={`hidden ${tracks} gap-2 text-xs text-muted xl:grid`} aria-hidden>
        <span />
        {Object.keys(columns).map((column) => (
          <span key={column}>{column}</span>
        ))}
      </div>
      {[...new Set(cells.map(({ setting }) => setting.precision!))].map((precision) => (
        <section key={precision} aria-label={precisions[precision]} className={`grid content-start gap-2 ${tracks}`}>
          <h2 className="self-center text-sm font-medium">{precisions[precision]}</h2>
          {cells.map(({ column, setting }, index) => {
            if (setting.precision !== precision) return null;
            const name = `${column}${setting.checkpointing ? ', checkpointing' : ''}`;
            const href = `/?${addressOf({ ...question, workload: { ...question.workload, adapter: undefined, quantize: undefined, ...setting } })}`;
            return (
              <Fragment key={name}>
                {setting.checkpointing && column === 'AdamW' && (
                  <span className="hidden self-center text-xs text-muted xl:block" aria-hidden>
                    checkpointing
                  </span>
                )}
                <Found name={name} row={rows[index]} measure={measure} best={best} href={href} />
              </Fragment>
            );
          })}
        </section>
      ))}
    </div>
  );
}

interface FoundProps {
  name: string;
  row: Row | undefined;
  measure: Measure;
  best: number;
  href: string;
}

function Found({ name, row, measure, best, href }: FoundProps) {
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
      <span className="text-xs text-muted xl:sr-only">{name}</span>
      <span className={value ? 'font-semibold' : 'text-xs text-muted'}>{value ? measure.show(value) : row ? whyNot(row) : '…'}</span>
    </Link>
  );
}

function whyNot({ missing_bytes: missing, optimal_batch_size: batch }: Row): string {
  if (missing) return `${bytes(missing)} over`;
  return batch ? 'not known' : 'not possible';
}
