import { useState } from 'react';
import { useLocation, useSearch } from 'wouter';
import { answer, api } from '../api/client';
import { useCards, useWorkers } from '../api/queries';
import { useEach } from '../compare/useEach';
import { bytes } from '../format';
import { ErrorBox } from '../ui/ErrorBox';
import { Evidence } from '../ui/Evidence';
import { NumberInput } from '../ui/Inputs';
import { PageTitle } from '../ui/PageTitle';
import { Panel } from '../ui/Panel';
import { Tabs } from '../ui/Tabs';
import { CardPicker } from '../workload/CardPicker';
import { type ChoiceField, fields } from '../workload/fields';
import { cardOf } from '../workload/subject';
import { AxisInput } from './AxisInput';
import { addressOfGrid, axes, type Axis, commandOf, type Grid, gridOf } from './grid';
import { measures } from './measures';
import { PeakChart } from './PeakChart';
import { ReportPanel } from './ReportPanel';
import { fallsWithContext, type Row, rowsOf, type Swept, sweepOf } from './sweep';
import { SweepTable } from './SweepTable';

const titles: Record<Axis, string> = { sizes: 'Model size', contexts: 'Context length', parts: 'What runs', precisions: 'Precision' };

// What the command line studies for where there is no card, too.
const studyCard = 'h200';

/** StudyPage sweeps plain language models over a grid: what each takes at its peak. */
export default function StudyPage() {
  const cards = useCards().data;
  const asked = gridOf(useSearch());
  const grid: Grid = { ...asked, gpu: asked.gpu ?? cards?.this_machine ?? studyCard };
  const [, navigate] = useLocation();
  const change = (patch: Partial<Grid>) => navigate(`/study?${addressOfGrid({ ...asked, ...patch })}`, { replace: true });
  const workers = useWorkers().data?.workers ?? [];
  const card = cardOf(grid, cards);
  // A question for each row, so that rows come one after the other. Requests take turns (api/transport.ts).
  const each = useEach<Row, Swept>(
    rowsOf(grid),
    (row) => ['sweep', sweepOf(row, grid)],
    async (row, signal) => ({ ...row, cells: (await answer(api.POST('/v1/sweeps', { body: sweepOf(row, grid), signal }))).cells }),
  );
  const [shown, setShown] = useState('allocated');
  const measure = measures[shown]!;
  const cells = each.parts.flatMap((part) => part.cells);
  const names = (fields.precision as ChoiceField).options;
  return (
    <>
      <PageTitle title="Study">
        What a plain language model takes at its peak, by size, context and precision, forward alone and in training.
      </PageTitle>
      <div className="grid gap-6 lg:grid-cols-[20rem_minmax(0,1fr)] lg:gap-10">
        <form
          aria-label="Grid"
          onSubmit={(event) => event.preventDefault()}
          className="flex flex-col gap-5 self-start rounded-lg border border-line bg-surface p-5 lg:sticky lg:top-20"
        >
          {(Object.keys(axes) as Axis[]).map((axis) => (
            <AxisInput
              key={axis}
              label={titles[axis]}
              options={axes[axis].map((value) => [value, axis === 'precisions' ? (names[value] ?? value) : value])}
              chosen={grid[axis]}
              onChange={(chosen) => change({ [axis]: chosen })}
            />
          ))}
          <NumberInput label="Batch" value={grid.batch} min={1} unit="samples" onChange={(batch) => change({ batch: batch ?? 4 })} />
          <CardPicker card={card} cards={cards} workers={workers} onChoose={(gpu) => change({ gpu })} />
        </form>
        <div className="flex min-w-0 flex-col gap-6">
          {each.problem && <ErrorBox problem={each.problem} title="Part of the grid could not be predicted" />}
          <Panel
            title={shown === 'time' ? 'Step time' : `Peak of ${measure.name.toLowerCase()} memory`}
            aside={
              each.missing > 0 ? (
                <span role="status" className="text-xs text-muted">
                  {each.parts.length} of {rowsOf(grid).length} rows
                </span>
              ) : (
                <Evidence engine="predicted" errors={measure.errors(cells[0]?.provenance?.accuracy)} />
              )
            }
          >
            <div className="mb-4">
              <Tabs label="Shown" tabs={Object.entries(measures).map(([value, { name }]) => ({ value, name }))} value={shown} onChange={setShown} />
            </div>
            <SweepTable grid={grid} swept={each.parts} measure={measure} names={names} complete={each.missing === 0} />
            {fallsWithContext(grid, each.parts) && (
              <p className="mt-4 text-xs text-muted">
                A longer context can take a little less: as long as the optimizer step sets the peak, the context only decides which cached blocks that step
                finds, and a block that fits better wastes less.
              </p>
            )}
            {card && cells.some((cell) => cell.out_of_memory) && (
              <p className="mt-4 text-xs text-muted">
                Red does not fit {card.name}, {bytes(card.memory.bytes)}; the figure is what it would take.
              </p>
            )}
          </Panel>
          {grid.contexts.length > 1 && grid.parts.includes('training') && <PeakChart grid={grid} swept={each.parts} names={names} />}
          <ReportPanel grid={grid} />
          <Panel title="On the command line">
            <pre className="rounded border border-line bg-bg p-4 font-mono text-xs leading-relaxed whitespace-pre-wrap">{commandOf(grid)}</pre>
          </Panel>
        </div>
      </div>
    </>
  );
}
