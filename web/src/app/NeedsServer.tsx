import { PageTitle } from '../ui/PageTitle';

/** NeedsServer stands in the place of a page that a site of plain files cannot show. */
export function NeedsServer({ name }: { name: string }) {
  return (
    <PageTitle title={name}>
      This page needs a server of your own. Start one with <code className="font-mono">uvx memorymark serve</code> and open the address that it prints.
    </PageTitle>
  );
}
