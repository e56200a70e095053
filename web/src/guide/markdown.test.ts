import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { blocksOf, piecesOf } from './markdown';

test('blocks are told apart', () => {
  const read = blocksOf('# A page\n\nSome text\non two lines.\n```sh\nls | wc\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n\n* one\n  more\n* two\n\n![x](y.png)\n');
  expect(read).toEqual([
    { kind: 'heading', level: 1, text: 'A page', id: 'a-page' },
    { kind: 'text', text: 'Some text on two lines.' },
    { kind: 'code', text: 'ls | wc' },
    { kind: 'table', head: ['a', 'b'], rows: [['1', '2']] },
    { kind: 'list', items: ['one more', 'two'], numbered: false },
  ]);
});

test('what is within a line, too', () => {
  expect(piecesOf('Run `serve`, **then** [look](which-batch.md).').map(({ kind, text }) => [kind, text])).toEqual([
    ['plain', 'Run '],
    ['code', 'serve'],
    ['plain', ', '],
    ['strong', 'then'],
    ['plain', ' '],
    ['link', 'look'],
    ['plain', '.'],
  ]);
});

const folder = join(import.meta.dirname, '../../../docs/guide');

test.each(readdirSync(folder))('%s has no Markdown that is not read', (name) => {
  const blocks = blocksOf(readFileSync(join(folder, name), 'utf8'));
  expect(blocks[0]?.kind).toBe('heading');
  const texts = blocks.flatMap((block) => (block.kind === 'text' ? block.text : []));
  const left = texts.flatMap((text) => piecesOf(text).flatMap((piece) => (piece.kind === 'plain' ? piece.text : [])));
  expect(left.filter((text) => /\*\*|`|\]\(|^\d+\. |^> /.test(text))).toEqual([]);
});
