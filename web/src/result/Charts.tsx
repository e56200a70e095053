import type { Answer, Curve } from '../api/client';
import { LineChart, type Mark } from '../charts/LineChart';
import { bytes, count, gib, rate } from '../format';
import { Evidence } from '../ui/Evidence';
import { Panel } from '../ui/Panel';
import { type Batch, batchesOf, type Found } from './batches';
import { noteAbout } from './notes';

interface Props {
  answer: Answer;
  /** more points than an answer has, when they are there */
  curve?: Curve;
}

/** MemoryChart is memory against the batch, with the limit and the fixed part. */
export function MemoryChart({ answer, curve }: Props) {
  const points = pointsOf(answer, curve).filter((p) => p.memory_bytes);
  const line = curve?.memory_line ?? answer.memory_line;
  return (
    <Panel title="Memory by batch" aside={<Evidence engine={answer.engine} />}>
          <LineChart
            summary={`Memory by batch: batch ${count(answer.optimal_batch_size)} is the largest below the limit of ${bytes(answer.limit_bytes)}.`}
            xLabel="batch"
            yLabel="GiB"
            formatY={String}
            lines={[
              { name: 'allocated, GiB', color: 'var(--cause-activations)', points: points.map((p) => [p.batch_size, gib(p.memory_bytes ?? 0)]) },
              { name: 'reserved, GiB', color: 'var(--muted)', thin: true, points: points.map((p) => [p.batch_size, gib(p.reserved_bytes ?? 0)]) },
            ]}
            rules={[{ y: gib(answer.limit_bytes), name: `limit ${bytes(answer.limit_bytes)}`, color: 'var(--bad-text)' }]}
            marks={marksOf(answer, points, (p) => gib(p.memory_bytes ?? 0))}
            tip={(x) => tip(points, x)}
          />
          {line && (
            <p className="mt-3 text-sm text-muted">
              From batch {count(line.from_batch)} on, <span className="text-text">{bytes(line.fixed)}</span> plus{' '}
              <span className="text-text">{bytes(line.per_sample)}</span> for each sample.
            </p>
          )}
    </Panel>
  );
}

/** SpeedChart is throughput against the batch, with the batch from which more gains little. */
export function SpeedChart({ answer, curve }: Props) {
  const points = pointsOf(answer, curve).filter((p) => p.success && p.samples_per_second);
  return (
    <Panel title="Speed by batch" aside={<Evidence engine={answer.speedup_basis || answer.engine} />}>
          <LineChart
            summary={`Samples per second by batch: beyond batch ${count(answer.recommended_batch_size ?? answer.optimal_batch_size)} little is gained.`}
            xLabel="batch"
            yLabel="samples a second"
            formatY={rate}
            lines={[{ name: 'samples a second', color: 'var(--info)', points: points.map((p) => [p.batch_size, p.samples_per_second ?? 0]) }]}
            marks={marksOf(answer, points, (p) => p.samples_per_second ?? 0)}
            tip={(x) => tip(points, x)}
          />
          {answer.recommended_batch_size && (
            <p className="mt-3 text-sm text-muted">
              Recommended: {noteAbout(answer, 'recommended')}.
            </p>
          )}
    </Panel>
  );
}

const markColors = { yours: 'var(--text)', recommended: 'var(--info)', largest: 'var(--muted)' };

function pointsOf(answer: Answer, curve: Curve | undefined): Found[] {
  return curve?.points ?? answer.results?.toSorted((a, b) => a.batch_size - b.batch_size) ?? [];
}

function marksOf(answer: Answer, points: Found[], y: (p: Found) => number): Mark[] {
  return batchesOf(answer).flatMap(({ size, name }: Batch) => {
    const point = points.find((p) => p.batch_size === size);
    return point ? [{ x: size, y: y(point), name: `${name}, ${count(size)}`, color: markColors[name] }] : [];
  });
}

function tip(points: Found[], x: number) {
  const p = points.find((point) => point.batch_size === x);
  const rows: [string, string][] = p
    ? [
        ...(p.memory_bytes ? [['allocated', bytes(p.memory_bytes)] as [string, string]] : []),
        ...(p.reserved_bytes ? [['reserved', bytes(p.reserved_bytes)] as [string, string]] : []),
        ...(p.samples_per_second ? [['samples/s', rate(p.samples_per_second)] as [string, string]] : []),
        ...(p.tokens_per_second ? [['tokens/s', rate(p.tokens_per_second)] as [string, string]] : []),
        ['trains', p.success ? 'yes' : 'no: out of memory'],
      ]
    : [];
  return { title: `Batch ${count(x)}`, rows };
}
