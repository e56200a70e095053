// Lines of stacks as text.
import type { Schemas } from '../api/client';

type Frame = Schemas['Frame'];

/** placeText is where a frame is. The modules of a prediction have no line. */
export function placeText(f: Frame): string {
  return f.line ? `${f.file}:${f.line}` : f.file;
}

/** frameText is a frame as a timeline has it. */
export function frameText(f: Frame): string {
  return `${placeText(f)} ${f.function}`;
}
