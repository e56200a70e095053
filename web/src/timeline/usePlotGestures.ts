import { type RefObject, useEffect, useEffectEvent } from 'react';
import { type Done, listen } from './gestures';
import type { Stage } from './stage';

interface Gestures {
  plot: RefObject<HTMLCanvasElement | null>;
  overview: RefObject<HTMLCanvasElement | null>;
  done: Required<Done>;
}

/** usePlotGestures moves a stage by wheel, mouse, pen and fingers. */
export function usePlotGestures(stage: Stage, { plot, overview, done }: Gestures) {
  const click = useEffectEvent(done.click);
  const range = useEffectEvent(done.range);
  const drawsRanges = useEffectEvent(done.drawsRanges);
  useEffect(() => {
    if (!plot.current || !overview.current) return;
    return listen(stage, plot.current, overview.current, {
      click: (under) => click(under),
      range: (drawn, ended) => range(drawn, ended),
      drawsRanges: () => drawsRanges(),
    });
  }, [stage, plot, overview]);
}
