import { Check, Copy } from 'lucide-react';
import { useState } from 'react';
import { Button } from './Button';

/** CopyButton puts a text on the clipboard. */
export function CopyButton({ text, name = 'Copy' }: { text: string; name?: string }) {
  const [copied, setCopied] = useState('');
  const done = copied === text;
  return (
    <Button
      size="small"
      onClick={async () => {
        await navigator.clipboard.writeText(text);
        setCopied(text);
      }}
    >
      {done ? <Check size={13} aria-hidden /> : <Copy size={13} aria-hidden />}
      <span aria-live="polite">{done ? 'Copied' : name}</span>
    </Button>
  );
}
