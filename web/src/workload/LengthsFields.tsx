import { useState } from 'react';
import type { Workload } from '../api/client';
import { Button } from '../ui/Button';
import { SwitchInput } from '../ui/Inputs';
import { describeLengths, parseLengths } from './lengths';
import type { QuestionState } from './useQuestion';

interface Props {
  workload: Workload;
  wrong?: string;
  onChange: QuestionState['change'];
}

/** LengthsFields take the lengths of real samples, from a file or pasted. */
export function LengthsFields({ workload: { lengths, packing }, wrong: refused, onChange }: Props) {
  const [text, setText] = useState('');
  const [wrong, setWrong] = useState('');

  function use(given: string) {
    const parsed = parseLengths(given);
    setWrong(typeof parsed === 'string' ? parsed : '');
    if (typeof parsed === 'string') return setText(given);
    setText('');
    onChange({ lengths: parsed });
  }

  if (lengths) {
    return (
      <>
        <p className="text-sm">{describeLengths(lengths)}</p>
        {refused && <p className="text-xs text-bad-text">{refused}</p>}
        <SwitchInput
          label="Pack them"
          help="Pack the samples into rows of sequence tokens instead of padding them to the longest of their batch."
          value={packing === true}
          onChange={(on) => onChange({ packing: on || undefined })}
        />
        <Button size="small" className="self-start" onClick={() => onChange({ lengths: undefined, packing: undefined })}>
          All samples have the same length
        </Button>
      </>
    );
  }
  return (
    <>
      <label className="flex flex-col gap-1.5 text-xs text-muted">
        Tokens of each sample, one number on a line
        <textarea
          value={text}
          rows={3}
          spellCheck={false}
          placeholder={'128\n512\n96'}
          aria-invalid={wrong ? true : undefined}
          onChange={(event) => setText(event.target.value)}
          className="resize-y rounded border border-line-strong bg-bg p-2 font-mono text-text placeholder:text-faint"
        />
      </label>
      {wrong && (
        <p role="alert" className="text-xs text-bad-text">
          {wrong}
        </p>
      )}
      <div className="flex flex-wrap items-center gap-3">
        <Button size="small" disabled={text.trim() === ''} onClick={() => use(text)}>
          Use these
        </Button>
        <label className="inline-flex min-h-6 cursor-pointer items-center text-xs text-accent-text underline underline-offset-4 focus-within:outline-2">
          Choose a file
          <input
            type="file"
            className="sr-only"
            onChange={async (event) => {
              const file = event.target.files?.[0];
              if (file) use(await file.text());
            }}
          />
        </label>
      </div>
    </>
  );
}
