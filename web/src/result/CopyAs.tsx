import { useState } from 'react';
import type { Answer, Model } from '../api/client';
import { CopyButton } from '../ui/CopyButton';
import { Panel } from '../ui/Panel';
import { Tabs } from '../ui/Tabs';
import type { Question } from '../workload/address';
import { commandLine, json, python, trainerArguments } from './exports';

const ways = [
  { value: 'command', name: 'Command line' },
  { value: 'json', name: 'JSON' },
  { value: 'python', name: 'Python' },
  { value: 'trainer', name: 'Trainer arguments' },
];

/** CopyAs takes the question or its answer elsewhere. */
export function CopyAs({ question, answer, model }: { question: Question; answer: Answer; model: Model | undefined }) {
  const [way, setWay] = useState('command');
  const texts: Record<string, () => string> = {
    command: () => commandLine(question),
    json: () => json(question),
    python: () => python(question, answer, model),
    trainer: () => trainerArguments(question, answer),
  };
  const text = texts[way]?.() ?? '';
  return (
    <Panel title="Use it in your code" aside={<CopyButton text={text} />}>
      <Tabs label="Copy as" tabs={ways} value={way} onChange={setWay} />
      {/* A block that scrolls must be reachable by keyboard. */}
      <pre tabIndex={0} aria-label="To copy" className="mt-3 max-h-80 overflow-auto rounded border border-line bg-bg p-4 font-mono text-xs leading-relaxed">
        {text}
      </pre>
    </Panel>
  );
}
