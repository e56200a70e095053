import { Link, useParams } from 'wouter';
import { PageTitle } from '../ui/PageTitle';
import { Empty } from '../ui/Empty';
import { type Block, blocksOf, type Piece, piecesOf } from './markdown';

// The guide of the repository, as it is.
const files = import.meta.glob<string>('../../../docs/guide/*.md', { query: '?raw', import: 'default', eager: true });
const topics = Object.fromEntries(Object.entries(files).map(([path, text]) => [/([\w-]+)\.md$/.exec(path)?.[1] ?? '', text]));

/** GuidePage shows the user guide, without a network. */
export default function GuidePage() {
  const { topic = 'README' } = useParams();
  const text = topics[topic];
  if (text === undefined) return <Empty title="The guide has no such page"><Link href="/guide" className="text-accent-text underline underline-offset-4">All of the guide</Link></Empty>;
  const [title, ...blocks] = blocksOf(text);
  return (
    <article className="mx-auto max-w-3xl">
      {topic !== 'README' && (
        <p className="mb-4 text-sm">
          <Link href="/guide" className="inline-flex min-h-6 items-center text-muted hover:text-text">
            Guide
          </Link>
        </p>
      )}
      <PageTitle title={title?.kind === 'heading' ? title.text : 'Guide'} />
      <div className="flex flex-col gap-4 text-[0.9375rem] leading-relaxed">
        {blocks.map((block, index) => (
          // The text never changes.
          // oxlint-disable-next-line react/no-array-index-key
          <Shown key={index} block={block} />
        ))}
      </div>
    </article>
  );
}

function Shown({ block }: { block: Block }) {
  switch (block.kind) {
    case 'heading': {
      const Heading = block.level === 2 ? 'h2' : 'h3';
      return (
        <Heading id={block.id} className={`scroll-mt-20 font-semibold tracking-tight ${block.level === 2 ? 'mt-4 text-lg' : 'mt-2'}`}>
          <Line text={block.text} />
        </Heading>
      );
    }
    case 'code':
      return (
        // A block that scrolls must be reachable by keyboard.
        <pre tabIndex={0} aria-label="Example" className="overflow-x-auto rounded-lg border border-line bg-surface p-4 font-mono text-xs leading-relaxed">
          {block.text}
        </pre>
      );
    case 'list': {
      const List = block.numbered ? 'ol' : 'ul';
      return (
        <List className={`flex flex-col gap-1.5 pl-5 ${block.numbered ? 'list-decimal' : 'list-disc'}`}>
          {block.items.map((item) => (
            <li key={item}>
              <Line text={item} />
            </li>
          ))}
        </List>
      );
    }
    case 'table':
      return <Table head={block.head} rows={block.rows} />;
    default:
      return (
        <p>
          <Line text={block.text} />
        </p>
      );
  }
}

function Table({ head, rows }: { head: string[]; rows: string[][] }) {
  return (
    <div className="overflow-x-auto" tabIndex={0} role="region" aria-label={head.filter(Boolean).join(', ') || 'Table'}>
      <table className="w-full text-sm">
        <thead className="text-left text-xs text-muted">
          <tr>
            {head.map((cell, index) => (
              // oxlint-disable-next-line react/no-array-index-key
              <th key={index} scope="col" className="py-1.5 pr-4 font-normal">
                {cell ? <Line text={cell} /> : <span className="sr-only">Name</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.join()} className="border-t border-line align-top">
              {row.map((cell, index) => (
                // oxlint-disable-next-line react/no-array-index-key
                <td key={index} className="py-1.5 pr-4">
                  <Line text={cell} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line({ text }: { text: string }) {
  return piecesOf(text).map((piece, index) => (
    // oxlint-disable-next-line react/no-array-index-key
    <Inline key={index} piece={piece} />
  ));
}

const linked = 'text-accent-text underline underline-offset-4';

function Inline({ piece }: { piece: Piece }) {
  switch (piece.kind) {
    case 'code':
      return <code className="rounded bg-raised px-1 py-0.5 font-mono text-[0.85em] break-words">{piece.text}</code>;
    case 'strong':
      return <strong>{piece.text}</strong>;
    case 'emphasis':
      return <em>{piece.text}</em>;
    case 'link':
      return <Reference text={piece.text} href={piece.href} />;
    default:
      return piece.text;
  }
}

// What is in the repository and not in the guide has no address here.
function Reference({ text, href }: { text: string; href: string }) {
  const topic = /^([\w-]+)\.md(#.*)?$/.exec(href);
  const shown = <Line text={text} />;
  if (topic) return <Link href={`/guide/${topic[1]}${topic[2] ?? ''}`} className={linked}>{shown}</Link>;
  if (/^(https:|#)/.test(href)) return <a href={href} className={linked}>{shown}</a>;
  return shown;
}
