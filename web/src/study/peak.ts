import type { Cell } from './grid';
import type { Studied } from './StudyPage';

/** peakOf is the peak of a step once the process has settled, and whether it fits. */
export function peakOf(rows: Studied[], wanted: Cell): { peak: number; fits: boolean } | undefined {
  const found = rows.find(({ cell }) => (Object.keys(wanted) as (keyof Cell)[]).every((key) => cell[key] === wanted[key]));
  const peak = found?.prediction.steps?.at(-1)?.peak_allocated;
  return peak === undefined ? undefined : { peak, fits: !found?.prediction.out_of_memory };
}
