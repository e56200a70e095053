import { useEffect, useRef } from 'react';
import type { TerminalLine } from '../api/events';
import { moment } from '../format';

const tones = { good: 'text-accent-text', bad: 'text-bad-text', faint: 'text-faint' };

/** Terminal shows what is really happening, newest last, and stays at the end while one looks at the end. */
export function Terminal({ lines, busy }: { lines: TerminalLine[]; busy: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  useEffect(() => {
    if (atEnd.current && lines.length > 0) box.current?.scrollTo({ top: box.current.scrollHeight });
  }, [lines]);
  return (
    <div
      ref={box}
      role="log"
      aria-label="Progress"
      tabIndex={0}
      onScroll={({ currentTarget: e }) => {
        atEnd.current = e.scrollHeight - e.scrollTop - e.clientHeight < 24;
      }}
      className="h-64 overflow-y-auto rounded border border-line bg-bg p-4 font-mono text-xs leading-relaxed"
    >
      {lines.map((line) => (
        <p key={line.key} className="flex gap-3">
          <span className="shrink-0 text-faint">{moment(line.time)}</span>
          <span className={`min-w-0 break-words ${line.tone ? tones[line.tone] : ''}`}>{line.text}</span>
        </p>
      ))}
      {busy && (
        <span aria-hidden className="mt-1 inline-block h-3.5 w-2 animate-pulse bg-accent motion-reduce:animate-none" />
      )}
    </div>
  );
}
