import { type RefObject, useEffect, useEffectEvent } from 'react';
import { listen } from './gestures';
import type { Under } from './scene';
import type { Stage } from './stage';

interface Gestures {
  plot: RefObject<HTMLCanvasElement | null>;
  overview: RefObject<HTMLCanvasElement | null>;
  onClick(under: Under | null): void;
}

/** usePlotGestures moves a stage by wheel, mouse, pen and fingers. */
export function usePlotGestures(stage: Stage, { plot, overview, onClick }: Gestures) {
  const click = useEffectEvent(onClick);
  useEffect(() => {
    if (plot.current && overview.current) return listen(stage, plot.current, overview.current, (under) => click(under));
  }, [stage, plot, overview]);
}
