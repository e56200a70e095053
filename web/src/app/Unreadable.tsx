import type { ReactNode } from 'react';
import { Link, useLocation, useSearch } from 'wouter';
import { buttonLook } from '../ui/Button';
import { PageTitle } from '../ui/PageTitle';
import { type OwnKeys, unreadableIn } from '../workload/address';

/** Readable shows a page only if all of its address can be read: an answer to another question would be worse than none. */
export function Readable({ own, children }: { own: OwnKeys; children: ReactNode }) {
  const search = useSearch();
  const [path] = useLocation();
  const unreadable = unreadableIn(search, own);
  if (unreadable.length === 0) return children;
  const rest = new URLSearchParams(search);
  for (const { key } of unreadable) rest.delete(key);
  return (
    <>
      <PageTitle title="This link cannot be read">There is no answer, since it could be one to another question.</PageTitle>
      <ul className="mb-6 flex max-w-prose flex-col gap-2 text-sm">
        {unreadable.map(({ key, text, wanted }) => (
          <li key={key + text}>
            <code className="font-mono break-all">
              {key}={text}
            </code>
            : {wanted}.
          </li>
        ))}
      </ul>
      <Link href={`${path}?${rest}`} className={buttonLook('plain', 'normal')}>
        Open it without {unreadable.length === 1 ? 'this part' : 'these parts'}
      </Link>
    </>
  );
}
