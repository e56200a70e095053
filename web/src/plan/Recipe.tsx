import { useState } from 'react';
import type { Schemas } from '../api/client';
import { CopyButton } from '../ui/CopyButton';
import { Tabs } from '../ui/Tabs';

/** Recipe is what to paste: how to launch it, the model, the arguments of Trainer, the configuration of accelerate. */
export function Recipe({ recipe }: { recipe: Schemas['Recipe'] }) {
  const parts = [
    { value: 'launch', name: 'Launch', text: recipe.launch },
    { value: 'model', name: 'Model', text: recipe.model },
    { value: 'trainer', name: 'Trainer', text: recipe.training_arguments },
    { value: 'accelerate', name: 'accelerate', text: recipe.accelerate },
    { value: 'pytorch', name: 'PyTorch', text: recipe.pytorch },
  ].filter((part) => part.text);
  const [chosen, setChosen] = useState('launch');
  const text = parts.find(({ value }) => value === chosen)?.text ?? '';
  return (
    <details className="mt-4 border-t border-line pt-3 text-sm">
      <summary className="min-h-6 text-muted hover:text-text">What to paste</summary>
      <div className="mt-3 flex flex-wrap items-center justify-between gap-2">
        <Tabs label="What to paste" tabs={parts} value={chosen} onChange={setChosen} />
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label="To copy" className="mt-3 max-h-72 overflow-auto rounded border border-line bg-bg p-3 font-mono text-xs leading-relaxed">
        {text}
      </pre>
    </details>
  );
}
