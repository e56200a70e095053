import { useTheme } from '../app/theme';
import { colorOf, css } from './colors';
import { highest, type Summary } from './data';
import { formatBytes, formatCount } from './format';
import { inkOf } from './plot';

interface Props {
  whole: Summary;
  group: number; // the only one in colour, -1 for all
  onGroup(group: number): void;
  overlay: string; // name of the recording that is laid over, or none
}

/** Legend says what the lines and colours mean; a group can be looked at alone. */
export function Legend({ whole, group, onGroup, overlay }: Props) {
  const theme = useTheme();
  const ink = inkOf(theme);
  const { allocated, reserved } = whole.lines;
  return (
    <section aria-labelledby="legend-title" className="rounded-lg border border-line bg-surface p-4 text-sm">
      <h2 id="legend-title" className="sr-only">
        Legend
      </h2>
      <ul className="flex flex-col gap-1">
        {reserved && <Line color={ink.reserved} name="reserved from the card" value={formatBytes(highest(reserved))} />}
        {allocated && <Line color={ink.allocated} name="allocated, with rounding" value={formatBytes(highest(allocated))} />}
        {overlay && <Line color={ink.other} name={`active: ${overlay}`} value="" />}
      </ul>
      <p className="mt-3 mb-1 flex justify-between text-xs text-muted">
        <span>active, as requested</span>
        <span>at the peak</span>
      </p>
      <ul>
        {whole.groups.map((g, i) => (
          <li key={g.label}>
            <button
              type="button"
              aria-pressed={group === i}
              title={`${g.label}: ${formatCount(g.count)} allocations, ${formatBytes(g.mean)} on average`}
              onClick={() => onGroup(group === i ? -1 : i)}
              className={`-mx-1 flex w-[calc(100%+0.5rem)] items-center gap-2.5 rounded px-1 py-0.5 text-left hover:bg-raised ${group >= 0 && group !== i ? 'opacity-60' : ''}`}
            >
              <span aria-hidden className="size-2.5 shrink-0 rounded-sm" style={{ background: css(colorOf(theme, g.color)) }} />
              <span className="min-w-0 flex-1 truncate">{g.label}</span>
              <span className="font-mono text-xs">{formatBytes(g.at_peak)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Line({ color, name, value }: { color: string; name: string; value: string }) {
  return (
    <li className="flex items-center gap-2.5">
      <span aria-hidden className="h-0.5 w-2.5 shrink-0" style={{ background: color }} />
      <span className="min-w-0 flex-1 truncate">{name}</span>
      <span className="font-mono text-xs">{value}</span>
    </li>
  );
}
