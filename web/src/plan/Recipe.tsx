import { useState } from 'react';
import type { Schemas } from '../api/client';
import { CopyButton } from '../ui/CopyButton';
import { Tabs } from '../ui/Tabs';

/** Recipe is what to paste: a program, and how to launch it. */
export function Recipe({ recipe }: { recipe: Schemas['Recipe'] }) {
  const parts = [
    { value: 'program', name: 'train.py', text: recipe.program },
    { value: 'launch', name: 'Launch', text: recipe.launch },
  ];
  const [chosen, setChosen] = useState('program');
  const text = parts.find(({ value }) => value === chosen)?.text ?? '';
  return (
    <details className="mt-4 border-t border-line pt-3 text-sm">
      <summary className="min-h-6 text-muted hover:text-text">Code to train it</summary>
      <div className="mt-3 flex flex-wrap items-center justify-between gap-2">
        <Tabs label="Code" tabs={parts} value={chosen} onChange={setChosen} />
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label="To copy" className="mt-3 max-h-72 overflow-auto rounded border border-line bg-bg p-3 font-mono text-xs leading-relaxed">
        {text}
      </pre>
    </details>
  );
}
