// What an analysis says while it runs, as lines of a terminal.
import type { Schemas } from './client';
import { bytes, count, rate } from '../format';

export interface TerminalLine {
  /** the event's number; steps of the same probe replace each other by key */
  key: string;
  time: string;
  text: string;
  tone?: 'good' | 'bad' | 'faint';
}

interface Told {
  kind?: string;
  purpose?: string;
  batch_size?: number;
  step?: number;
  success?: boolean;
  memory_bytes?: number;
  reserved_bytes?: number;
  samples_per_second?: number;
  seconds?: number;
  message?: string;
  device?: { name?: string };
  versions?: { torch?: string };
}

const purposes: Record<string, string> = {
  confirm: 'full steps in a fresh process',
  guide: 'how memory grows',
  time: 'how fast it is',
};

/** lineOf is an event of the worker as a line. */
export function lineOf(id: string, { time, data }: Schemas['Progress']): TerminalLine {
  const told = (typeof data === 'object' && data !== null ? data : { message: String(data) }) as Told;
  const line = (text: string, tone?: TerminalLine['tone']): TerminalLine => ({ key: id, time, text, tone });
  const batch = `batch ${count(told.batch_size ?? 0)}`;
  switch (told.kind) {
    case 'ready':
      return line(`${told.device?.name ?? 'worker'}, PyTorch ${told.versions?.torch ?? 'of its own'}`);
    case 'trying':
      return line(`${batch}: ${purposes[told.purpose ?? ''] ?? 'trying'}`, 'faint');
    case 'step':
      return line(`${batch}: step ${told.step} ${memory(told)}${took(told)}`, 'faint');
    case 'tried':
      if (told.success === false) return line(`${batch}: ${told.message ?? 'does not train'}${took(told)}`, 'bad');
      return line(`${batch}: trains, ${memory(told)}${speed(told)}${took(told)}`, 'good');
    default:
      return line(told.message ?? JSON.stringify(data));
  }
}

function memory({ memory_bytes: allocated, reserved_bytes: reserved }: Told): string {
  if (!allocated) return '';
  return `${bytes(allocated)}${reserved ? `, ${bytes(reserved)} reserved` : ''}`;
}

function speed({ samples_per_second: samples }: Told): string {
  return samples ? `, ${rate(samples)} samples/s` : '';
}

function took({ seconds }: Told): string {
  return seconds ? ` (${seconds.toFixed(seconds < 1 ? 3 : 1)} s)` : '';
}

/** stateLine says what became of an analysis. */
export function stateLine(analysis: Schemas['Analysis']): TerminalLine {
  const at = { queued: analysis.queued, running: analysis.started, succeeded: analysis.ended, failed: analysis.ended, cancelled: analysis.ended };
  const who = analysis.worker ? ` at ${analysis.worker}` : '';
  const again = analysis.attempt && analysis.attempt > 1 ? `, attempt ${analysis.attempt}` : '';
  const why = analysis.reason ? `: ${analysis.reason}` : '';
  const text = {
    queued: `waiting for a worker${why}`,
    running: `running${who}${again}`,
    succeeded: 'done',
    failed: `failed${why}`,
    cancelled: `cancelled${why}`,
  }[analysis.state];
  const tone = ({ succeeded: 'good', failed: 'bad', cancelled: 'bad' } as const)[analysis.state as 'failed'];
  return { key: `${analysis.state} ${analysis.attempt ?? 0}`, time: at[analysis.state] ?? analysis.queued, text, tone };
}
