import type { ReactNode } from 'react';
import type { Schemas } from '../api/client';
import { bytes } from '../format';
import { causes } from './causes';

interface Props {
  breakdown: Schemas['Breakdown'];
  card: string;
  /** memory of the card */
  total: number;
  /** what is left of it, negative for what is missing */
  left: number;
}

const smallest = 0.01; // of the whole; what is less is in the table below

/** CardBar is what a batch takes of a card by cause, drawn past the card's edge where it takes more than there is. */
export function CardBar({ breakdown, card, total, left }: Props) {
  const whole = Math.max(total, breakdown.total);
  const share = (n: number) => `${(100 * n) / whole}%`;
  const shown = causes.filter(([cause]) => breakdown[cause] >= smallest * whole || (breakdown[cause] > 0 && (cause === 'context' || cause === 'fragmentation')));
  const over = breakdown.total > total;
  return (
    <figure aria-label={`Memory at the peak: ${bytes(breakdown.total)} on a card of ${bytes(total)}`}>
      <div className="relative pt-6" aria-hidden>
        <div className="relative h-10">
          <div className="absolute inset-y-0 left-0 rounded border border-line-strong bg-raised" style={{ width: share(total) }} />
          <div className="absolute inset-y-1 left-0 flex overflow-hidden rounded-sm" style={{ width: share(breakdown.total) }}>
            {causes.map(([cause, name, token]) => (
              <div key={cause} title={`${name}: ${bytes(breakdown[cause])}`} className="shrink-0" style={{ width: `${(100 * breakdown[cause]) / breakdown.total}%`, background: `var(--cause-${token})` }} />
            ))}
          </div>
          {over && <div className="absolute inset-y-1 right-0 rounded-r-sm border border-bad bg-beyond" style={{ left: share(total) }} />}
        </div>
        <div className="absolute top-0 bottom-0 border-r-2 border-text" style={{ width: share(total) }}>
          <span className={`absolute top-0 text-xs whitespace-nowrap text-muted ${total < whole / 2 ? 'left-full pl-2' : 'right-0 pr-2'}`}>
            {card}, {bytes(total)}
          </span>
        </div>
      </div>
      <figcaption className="mt-3 flex flex-wrap gap-x-5 gap-y-1.5 text-xs">
        {shown.map(([cause, name, token]) => (
          <Amount key={cause} name={name} swatch={<i className="size-2.5 rounded-sm" style={{ background: `var(--cause-${token})` }} />}>
            {bytes(breakdown[cause])}
          </Amount>
        ))}
        <Amount name={left < 0 ? 'Missing' : 'Margin'} swatch={<i className={`size-2.5 rounded-sm border ${left < 0 ? 'border-bad bg-beyond' : 'border-line-strong bg-raised'}`} />}>
          {bytes(Math.abs(left))}
        </Amount>
      </figcaption>
    </figure>
  );
}

function Amount({ name, swatch, children }: { name: string; swatch: ReactNode; children: string }) {
  return (
    <span className="inline-flex items-center gap-1.5">
      {swatch}
      <span className="text-muted">{name}</span> <span>{children}</span>
    </span>
  );
}
