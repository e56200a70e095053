import type { Answer } from '../api/client';

/** noteAbout is the sentence of an answer about something, '' if there is none. */
export function noteAbout({ notes }: Answer, wanted: string): string {
  return notes?.find(({ about }) => about === wanted)?.text ?? '';
}
