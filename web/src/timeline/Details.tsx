import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { useTheme } from '../app/theme';
import { Button } from '../ui/Button';
import { colorOf, css } from './colors';
import type { Summary } from './data';
import { formatAddress, formatBytes, formatCount, formatMicros, formatMoment } from './format';
import { frameText } from './frame';
import { type EventRow, type Recording, useEvents } from './queries';
import type { Under } from './scene';
import { Stack } from './Stack';
import type { Stage } from './stage';

interface Props {
  recording: Recording;
  whole: Summary | null;
  under: Under | null;
  stage: Stage;
  onClose(): void;
}

/** Details describes what was selected: an allocation with its stack, or a band of small ones. */
export function Details({ recording, whole, under, stage, onClose }: Props) {
  const theme = useTheme();
  const group = under && whole?.groups[under.group];
  return (
    <section aria-label="Selection" aria-live="polite" className="rounded-lg border border-line bg-surface p-4 text-sm">
      {!under && <p className="text-muted">Click an allocation to see its stack, or press j.</p>}
      {under && (
        <div className="flex items-center gap-2.5">
          {group && <span aria-hidden className="size-3 shrink-0 rounded-sm" style={{ background: css(colorOf(theme, group.color)) }} />}
          <h2 className="min-w-0 flex-1 truncate font-semibold">{under.kind === 'shape' ? formatBytes(under.size) : 'Smaller allocations'}</h2>
          <button
            type="button"
            onClick={onClose}
            aria-label="Clear the selection"
            title="Clear the selection (Esc)"
            className="rounded p-1 text-muted hover:text-text"
          >
            <X size={14} aria-hidden />
          </button>
        </div>
      )}
      {under?.kind === 'shape' && <Allocation recording={recording} shape={under} label={group?.label ?? ''} stage={stage} />}
      {under?.kind === 'band' && (
        <p className="mt-2 text-muted">
          {formatCount(under.count)} of {group?.label}, the largest {formatBytes(under.largest)}. Zoom in, or raise the detail, to see them one by one.
        </p>
      )}
    </section>
  );
}

type Shape = Extract<Under, { kind: 'shape' }>;

function Allocation({ recording, shape, label, stage }: { recording: Recording; shape: Shape; label: string; stage: Stage }) {
  const events = useEvents(recording, shape.id < 0 ? null : { from: 0, limit: 10, allocation: shape.id });
  const rows = events.isPlaceholderData ? [] : (events.data?.events ?? []);
  const first = rows[0];
  const said = [...new Set(rows.flatMap((row) => row.metadata ?? []))];
  const frames = shape.frames.length > 0 ? shape.frames : (first?.frames?.map(frameText) ?? []);
  // What was chosen in the map or the list is known by its number alone until the server has answered.
  const { born, freed } = first ? { born: first.born ?? -1, freed: first.freed ?? -1 } : shape;
  return (
    <>
      <dl className="mt-3 grid grid-cols-[5.5rem_minmax(0,1fr)] gap-x-3 gap-y-1">
        <Row name="for">{label || first?.category || 'unknown'}</Row>
        <Row name="bytes">{formatCount(shape.size)}</Row>
        {shape.id >= 0 && <Row name="number">#{formatCount(shape.id)}</Row>}
        {first?.address !== undefined && <Row name="address">{formatAddress(first.address)}</Row>}
        <Row name="allocated">{formatMoment(born)}</Row>
        <Row name="freed">{freed < 0 ? 'never' : formatMoment(freed)}</Row>
        {lifetimeOf(rows) !== null && <Row name="lifetime">{formatMicros(lifetimeOf(rows)!)}</Row>}
        {first && first.stream !== 0 && <Row name="stream">{first.stream}</Row>}
        {first?.backward_node && <Row name="backward of">{first.backward_node}</Row>}
        {said.length > 0 && <Row name="metadata">{said.join('; ')}</Row>}
      </dl>
      <div className="mt-3 flex flex-wrap gap-2">
        {born >= 0 && (
          <Button size="small" onClick={() => stage.goTo(born)}>
            Allocated
          </Button>
        )}
        {freed >= 0 && (
          <Button size="small" onClick={() => stage.goTo(freed)}>
            Freed
          </Button>
        )}
        <Button size="small" onClick={() => showLife(stage, born, freed)}>
          Lifetime
        </Button>
      </div>
      <h3 className="mt-4 text-xs text-muted">Stack, most recent call first</h3>
      <Stack frames={frames} />
    </>
  );
}

function Row({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <dt className="text-muted">{name}</dt>
      <dd className="min-w-0 font-mono text-xs leading-5 break-words">{children}</dd>
    </>
  );
}

function lifetimeOf(events: EventRow[]): number | null {
  const rows = events.filter((row) => row.action !== 'annotate');
  const from = rows[0]?.elapsed_us;
  const to = rows.at(-1)?.elapsed_us;
  return rows.length > 1 && from !== undefined && to !== undefined ? to - from : null;
}

function showLife(stage: Stage, born: number, freed: number) {
  const from = born < 0 ? 0 : born + 1;
  const to = freed < 0 ? stage.world.x : freed + 1;
  const margin = Math.max(4, (to - from) / 8);
  stage.glide({ ...stage.view, x0: from - margin, x1: to + margin });
}
