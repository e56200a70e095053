import { Breakable } from './Breakable';
import { formatCount } from './format';
import { packageOf, type Place, runsOf, shortFile } from './frame';

/** Stack lists frames, innermost first: the user's stand out, and those of libraries are folded. */
export function Stack({ frames }: { frames: string[] }) {
  if (frames.length === 0) return <p className="mt-1 text-xs text-muted">No stack was recorded.</p>;
  return (
    // What scrolls must be reached by keys.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <ol className="mt-1 max-h-72 overflow-y-auto font-mono text-xs" tabIndex={0} aria-label="Stack">
      {runsOf(frames).map((run, i) => (
        // A frame may be there twice; the order is fixed.
        // oxlint-disable-next-line react/no-array-index-key
        <li key={i} className="border-b border-line/60 py-1 last:border-0">
          {run.kind === 'frame' ? <Frame place={run.place} /> : <Folded places={run.places} />}
        </li>
      ))}
    </ol>
  );
}

function Folded({ places }: { places: Place[] }) {
  const libraries = [...new Set(places.map(({ file }) => packageOf(file)))];
  return (
    <details>
      <summary className="min-h-6 cursor-pointer leading-6 text-muted">
        {formatCount(places.length)} frames of {libraries.join(', ')}
      </summary>
      <ol className="ml-4">
        {places.map((place, i) => (
          // oxlint-disable-next-line react/no-array-index-key
          <li key={i} className="py-1">
            <Frame place={place} />
          </li>
        ))}
      </ol>
    </details>
  );
}

/** Frame has the function first: that is what people look for. A line breaks after a slash, never in a number. */
function Frame({ place: { name, file, line, library } }: { place: Place }) {
  return (
    <p title={line ? `${file}:${line}` : file} className="[overflow-wrap:anywhere]">
      <span className={library ? 'text-text' : 'font-bold text-text'}>{name}</span>{' '}
      <span className="text-faint">
        <Breakable path={shortFile(file)} />
        {line && <span className="whitespace-nowrap">:{line}</span>}
      </span>
    </p>
  );
}
