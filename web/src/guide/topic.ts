// Which page of the guide helps with a page of the program.
const topics: [path: string, topic: string][] = [
  ['/cards', 'what-to-train-on'],
  ['/plan', 'what-to-train-on'],
  ['/settings', 'will-lora-fit'],
  ['/timeline', 'my-run-died'],
  ['/study', 'glossary'],
  ['/history', 'for-a-team'],
  ['/workers', 'for-a-team'],
];

/** guideTo is the address of what the guide says about a page. */
export function guideTo(location: string): string {
  if (location.startsWith('/guide')) return '/guide';
  return `/guide/${topics.find(([path]) => location.startsWith(path))?.[1] ?? 'which-batch'}`;
}
