import { useState } from 'react';
import type { Answer } from '../api/client';
import { count } from '../format';
import { CopyButton } from '../ui/CopyButton';
import { Panel } from '../ui/Panel';
import { Tabs } from '../ui/Tabs';
import type { Question } from '../workload/address';
import { isOwnCode } from '../workload/subject';
import { commandLine, json } from './exports';

const ways = [
  { value: 'command', name: 'Command line' },
  { value: 'json', name: 'JSON' },
  { value: 'python', name: 'Python' },
];

/** CopyAs takes the question or its answer elsewhere. The user's own program is not part of a workload in JSON. */
export function CopyAs({ question, answer }: { question: Question; answer: Answer }) {
  const { recipe, recommended_batch_size: recommended, current_batch_size: yours, accumulation } = answer;
  const program = isOwnCode(question.workload) ? answer.model_name : undefined;
  const shown = ways.filter(({ value }) => (value === 'json' ? !program : value !== 'python' || recipe));
  const [way, setWay] = useState('command');
  const texts: Record<string, () => string> = {
    command: () => commandLine(question, program),
    json: () => json(question),
    python: () => recipe?.program ?? '',
  };
  const text = texts[way]?.() ?? '';
  return (
    <Panel title="Use it in your code" aside={<CopyButton text={text} />}>
      <Tabs label="Copy as" tabs={shown} value={way} onChange={setWay} />
      {/* A block that scrolls must be reachable by keyboard. */}
      <pre tabIndex={0} aria-label="To copy" className={`mt-3 max-h-80 overflow-auto rounded border border-line bg-bg p-4 font-mono text-xs leading-relaxed ${way === 'command' ? 'break-words whitespace-pre-wrap' : ''}`}>
        {text}
      </pre>
      {way === 'python' && !accumulation && recommended !== undefined && recommended !== yours && (
        <p className="mt-2 text-xs text-muted">
          The program uses the recommended batch, {count(recommended)}; yours is {count(yours)}.
        </p>
      )}
    </Panel>
  );
}
