/** What the keys do on the plot, and how the help names them. */

export type Act =
  | 'left'
  | 'right'
  | 'up'
  | 'down'
  | 'in'
  | 'out'
  | 'taller'
  | 'shorter'
  | 'all'
  | 'fit'
  | 'peak'
  | 'failure'
  | 'previous event'
  | 'next event'
  | 'above'
  | 'below'
  | 'next match'
  | 'previous match'
  | 'range'
  | 'search'
  | 'help'
  | 'clear';

const byKey: Record<string, Act> = {
  ArrowLeft: 'left',
  ArrowRight: 'right',
  ArrowUp: 'up',
  ArrowDown: 'down',
  '+': 'in',
  '=': 'in',
  '-': 'out',
  '}': 'taller',
  '{': 'shorter',
  '0': 'all',
  Home: 'all',
  f: 'fit',
  p: 'peak',
  o: 'failure',
  '[': 'previous event',
  ']': 'next event',
  k: 'above',
  j: 'below',
  r: 'range',
  n: 'next match',
  N: 'previous match',
  '/': 'search',
  '?': 'help',
  Escape: 'clear',
};

/** actOf returns what a key means, unless it is for someone else: the browser, or a field that is typed in. */
export function actOf(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'target'>): Act | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  if (event.target instanceof HTMLElement && event.target.matches('input:not([type=checkbox]), select, textarea, [contenteditable]')) return null;
  return byKey[event.key] ?? null;
}

export const help: [string, string][] = [
  ['← →', 'move along the events'],
  ['↑ ↓', 'move along the bytes'],
  ['+ −', 'zoom events'],
  ['{ }', 'zoom bytes'],
  ['0', 'show all'],
  ['f', 'fit the bytes to what is seen'],
  ['p', 'go to the peak'],
  ['o', 'go to the next out-of-memory error'],
  ['[ ]', 'cursor to the event before, after'],
  ['k j', 'select the allocation above, below at the cursor'],
  ['r', 'summarize the visible range; drag with Shift to select one'],
  ['/', 'search'],
  ['n N', 'next, previous match'],
  ['Esc', 'drop the selection'],
];
