import { useEffect, useState } from 'react';
import type { Address } from './index';
import type { Moment, Stage } from './stage';
import { useStage } from './useStage';
import type { View } from './view';

/**
 * useMoment keeps in the address what is looked at, so that a link shows the same to someone else: "view" is the part
 * that is seen, "at" the event of the cursor, "find" what is searched for. What is seen first anyway stays out of it.
 */
export function useMoment(stage: Stage, address: Address, find: string, failure?: number) {
  useState(() => {
    const asked = momentOf(address);
    stage.beginAt({ ...asked, cursor: asked.cursor ?? failure ?? null }); // what people come for
  });
  const whole = useStage(stage, 'whole');
  const view = useStage(stage, 'rested');
  const cursor = useStage(stage, 'cursor');
  const change = {
    view: view ? viewText(view, stage.world.y) : '',
    at: cursor === null || cursor === (failure ?? whole?.peak.event) ? '' : String(cursor),
    find,
  };
  const differs = Object.entries(change).some(([key, value]) => address.get(key) !== value);
  useEffect(() => {
    if (!whole || !differs) return;
    const timer = setTimeout(() => address.set(change), writeMillis);
    return () => clearTimeout(timer);
  });
}

const writeMillis = 250; // browsers refuse an address that changes a hundred times in half a minute

/** momentOf reads what is looked at from the address; what is not understood is left open. */
export function momentOf(address: Pick<Address, 'get'>): Moment {
  const at = address.get('at');
  return { view: viewOf(address.get('view')), cursor: /^-?\d+$/.test(at) ? Number(at) : null };
}

/** viewText writes a view as events and, where not all of them are seen, bytes: "1200..1350" or "1200..1350,0..4096". */
export function viewText({ x0, x1, y0, y1 }: View, most: number): string {
  const events = `${Math.floor(x0)}..${Math.ceil(x1)}`;
  return y0 === 0 && y1 === most ? events : `${events},${Math.round(y0)}..${Math.round(y1)}`;
}

/** viewOf reads what viewText wrote. */
export function viewOf(text: string): Partial<View> | null {
  const found = /^(\d+)\.\.(\d+)(?:,(\d+)\.\.(\d+))?$/.exec(text);
  if (!found) return null;
  const [x0, x1, y0, y1] = found.slice(1).map((n) => (n === undefined ? undefined : Number(n)));
  return { x0, x1, ...(y0 === undefined ? {} : { y0, y1 }) };
}
