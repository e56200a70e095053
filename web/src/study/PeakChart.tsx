import { useState } from 'react';
import { LineChart } from '../charts/LineChart';
import { bytes, gib } from '../format';
import { Panel } from '../ui/Panel';
import { Tabs } from '../ui/Tabs';
import type { Grid } from './grid';
import { cellIn, type Swept } from './sweep';

const colors = ['parameters', 'gradients', 'optimizer', 'activations', 'temporaries'].map((cause) => `var(--cause-${cause})`);

interface Props {
  grid: Grid;
  swept: Swept[];
  names: Record<string, string>;
}

/** PeakChart is the peak of training against the context, a line for each size. */
export function PeakChart({ grid, swept, names }: Props) {
  const [chosen, setChosen] = useState('');
  const precision = grid.precisions.includes(chosen) ? chosen : (grid.precisions[0] ?? 'fp32');
  const peak = (size: string, context: string) => cellIn(swept, { size, precision, context, part: 'training' })?.peak?.allocated;
  const lines = grid.sizes
    .map((size, index) => ({
      name: size,
      color: colors[index % colors.length]!,
      points: grid.contexts.flatMap((context): [number, number][] => {
        const at = peak(size, context);
        return at === undefined ? [] : [[Number(context), gib(at)]];
      }),
    }))
    .filter((line) => line.points.length > 0);
  const card = swept[0]?.cells[0]?.provenance?.gpu_memory;
  if (lines.length === 0) return null;
  return (
    <Panel title="Training against context, GiB">
      {grid.precisions.length > 1 && (
        <div className="mb-4">
          <Tabs label="Precision" tabs={grid.precisions.map((value) => ({ value, name: names[value] ?? value }))} value={precision} onChange={setChosen} />
        </div>
      )}
      <LineChart
        summary="Peak of training against the context length, for each model size."
        xLabel="context"
        yLabel="GiB"
        formatY={String}
        lines={lines}
        rules={card ? [{ y: gib(card), name: `the card, ${bytes(card)}`, color: 'var(--bad-text)' }] : []}
        tip={(x) => ({
          title: `Context ${x}`,
          rows: grid.sizes.flatMap((size): [string, string][] => {
            const at = peak(size, String(x));
            return at === undefined ? [] : [[size, bytes(at)]];
          }),
        })}
      />
    </Panel>
  );
}
