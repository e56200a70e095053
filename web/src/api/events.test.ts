import { expect, test } from 'vitest';
import type { Analysis } from './client';
import { lineOf, stateLine } from './events';

const at = '2026-11-15T06:00:00Z';
const told = (data: unknown) => lineOf('1', { time: at, attempt: 1, data });

test.each([
  [{ kind: 'message', message: 'predicting bert on an NVIDIA A10' }, 'predicting bert on an NVIDIA A10', undefined],
  [{ kind: 'ready', device: { name: 'NVIDIA H200' }, versions: { torch: '2.11.0' } }, 'NVIDIA H200, PyTorch 2.11.0', undefined],
  [{ kind: 'trying', purpose: 'confirm', batch_size: 92 }, 'batch 92: full steps in a fresh process', 'faint'],
  [{ kind: 'step', batch_size: 92, step: 2, memory_bytes: 2 ** 31, seconds: 0.25 }, 'batch 92: step 2 2.00 GiB (0.250 s)', 'faint'],
  [{ kind: 'tried', batch_size: 92, success: true, memory_bytes: 2 ** 31, reserved_bytes: 2 ** 32, seconds: 12.34 }, 'batch 92: trains, 2.00 GiB, 4.00 GiB reserved (12.3 s)', 'good'],
  [{ kind: 'tried', batch_size: 93, success: false, message: 'out of memory' }, 'batch 93: out of memory', 'bad'],
  ['plain', 'plain', undefined],
  [{ kind: 'newer', x: 1 }, '{"kind":"newer","x":1}', undefined],
])('%j', (data, text, tone) => {
  expect(told(data)).toEqual({ key: '1', time: at, text, tone });
});

test('a state says why', () => {
  const failed = { id: 'x', state: 'failed', engine: 'measured', gpu: 'h200', queued: at, ended: at, reason: 'its worker died 3 times' } as Analysis;
  expect(stateLine(failed)).toMatchObject({ text: 'failed: its worker died 3 times', tone: 'bad' });
});
