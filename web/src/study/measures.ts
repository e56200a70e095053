import type { Schemas } from '../api/client';
import { bytes, seconds } from '../format';
import type { SweptCell } from './sweep';

/** Measure is a figure that a cell has. */
export interface Measure {
  name: string;
  of(cell: SweptCell): number | undefined;
  show(value: number): string;
  /** how far predictions of it were off */
  errors(accuracy: Schemas['Accuracy'] | undefined): Schemas['Errors'] | undefined;
}

export const measures: Record<string, Measure> = {
  allocated: { name: 'Allocated', of: (cell) => cell.peak?.allocated, show: bytes, errors: (accuracy) => accuracy?.allocated },
  reserved: { name: 'Reserved', of: (cell) => cell.peak?.reserved, show: bytes, errors: (accuracy) => accuracy?.reserved },
  time: { name: 'Step time', of: (cell) => cell.step_seconds, show: seconds, errors: (accuracy) => accuracy?.step_time },
};
