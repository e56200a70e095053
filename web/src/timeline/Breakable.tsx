import { Fragment } from 'react';

/** Breakable is a path that may continue in the next line after a slash, so that no number is broken. */
export function Breakable({ path }: { path: string }) {
  return path.split(/(?<=[\\/])/).map((part, i) => (
    // Parts may be equal; their order is fixed.
    // oxlint-disable-next-line react/no-array-index-key
    <Fragment key={i}>
      {part}
      <wbr />
    </Fragment>
  ));
}
