// As much of Markdown as the guide uses, read into blocks.

export type Block =
  | { kind: 'heading'; level: number; text: string; id: string }
  | { kind: 'text'; text: string }
  | { kind: 'code'; text: string }
  | { kind: 'list'; items: string[]; numbered: boolean }
  | { kind: 'table'; head: string[]; rows: string[][] };

/** blocksOf reads a page of the guide. Pictures are left out: the page itself is what they show. */
export function blocksOf(markdown: string): Block[] {
  const lines = markdown.split('\n');
  const blocks: Block[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!;
    const until = (ends: (line: string) => boolean) => {
      const from = at;
      while (at < lines.length && !ends(lines[at]!)) at++;
      return lines.slice(from, at);
    };
    const heading = /^(#+) (.*)/.exec(line);
    if (line.trim() === '' || line.startsWith('![')) at++;
    else if (heading) {
      blocks.push({ kind: 'heading', level: heading[1]!.length, text: heading[2]!, id: idOf(heading[2]!) });
      at++;
    } else if (line.startsWith('```')) {
      at++;
      blocks.push({ kind: 'code', text: until((each) => each.startsWith('```')).join('\n') });
      at++;
    } else if (line.startsWith('|')) {
      const [head = [], , ...rows] = until((each) => !each.startsWith('|')).map(cellsOf);
      blocks.push({ kind: 'table', head, rows });
    } else if (item.test(line)) {
      blocks.push({ kind: 'list', items: itemsOf(until((each) => each.trim() === '')), numbered: /^\d/.test(line) });
    } else {
      blocks.push({ kind: 'text', text: until(endsText).join(' ') });
    }
  }
  return blocks;
}

const item = /^([*-]|\d+\.) /;
const endsText = (line: string) => line.trim() === '' || /^(#|```|\|)/.test(line) || item.test(line);

function cellsOf(line: string): string[] {
  return line
    .replace(/^\||\|$/g, '')
    .split('|')
    .map((cell) => cell.trim());
}

function itemsOf(lines: string[]): string[] {
  const items: string[] = [];
  for (const line of lines) {
    if (item.test(line)) items.push(line.replace(item, ''));
    else items[items.length - 1] += ` ${line.trim()}`;
  }
  return items;
}

/** idOf is what links to a heading call it. */
function idOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, '')
    .trim()
    .replace(/\s+/g, '-');
}

export type Piece = { text: string; kind: 'plain' | 'code' | 'strong' | 'emphasis' } | { text: string; kind: 'link'; href: string };

const inline = /`([^`]+)`|\*\*([^*]+)\*\*|\*([^*]+)\*|\[([^\]]+)\]\(([^)]+)\)/g;

/** piecesOf reads what is within a line. */
export function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (const found of text.matchAll(inline)) {
    if (found.index > from) pieces.push({ kind: 'plain', text: text.slice(from, found.index) });
    const [all, code, strong, emphasis, link, href] = found;
    if (code !== undefined) pieces.push({ kind: 'code', text: code });
    else if (strong !== undefined) pieces.push({ kind: 'strong', text: strong });
    else if (emphasis !== undefined) pieces.push({ kind: 'emphasis', text: emphasis });
    else pieces.push({ kind: 'link', text: link!, href: href! });
    from = found.index + all.length;
  }
  if (from < text.length) pieces.push({ kind: 'plain', text: text.slice(from) });
  return pieces;
}
