import type { Card, Workload } from '../api/client';
import { presetOf, presets, setOf, unset } from './presets';
import type { QuestionState } from './useQuestion';

interface Props {
  workload: Workload;
  card: Card | undefined;
  onChange: QuestionState['change'];
}

/** Presets are where most people begin; the one that is chosen is taken back by another click. */
export function Presets({ workload, card, onChange }: Props) {
  const chosen = presetOf(workload, card);
  return (
    <div role="group" aria-label="Begin with" className="flex flex-wrap gap-1.5">
      {presets.map((preset) => (
        <button
          key={preset.name}
          type="button"
          title={preset.about}
          aria-pressed={preset === chosen}
          onClick={() => onChange(preset === chosen ? unset : setOf(preset, card))}
          className="min-h-7 rounded-full border border-line-strong px-2.5 py-1 text-xs text-muted transition-colors hover:text-text aria-pressed:border-accent-text aria-pressed:bg-accent-soft aria-pressed:text-accent-text"
        >
          {preset.name}
        </button>
      ))}
    </div>
  );
}
