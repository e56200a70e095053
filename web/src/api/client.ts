// Requests to the server, with the types of its OpenAPI document. Every failure
// becomes a Problem, which says what happened and what to do.
import createClient from 'openapi-fetch';
import { Problem, type ProblemDocument } from './problem';
import type { components, paths } from './schema';
import { send } from './transport';

export type Schemas = components['schemas'];
export type Workload = Schemas['Workload'];
export type Answer = Schemas['Answer'];
export type Analysis = Schemas['Analysis'];
export type Prediction = Schemas['Prediction'];
export type Curve = Schemas['Curve'];
export type Card = Schemas['Card'];
export type Model = Schemas['Model'];

export const api = createClient<paths>({ baseUrl: globalThis.location?.origin ?? '', fetch: send });

interface Outcome<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** answer returns the data of a request, or throws what went wrong as a Problem. */
export async function answer<T>(request: Promise<Outcome<T>>): Promise<T> {
  let outcome: Outcome<T>;
  try {
    outcome = await request;
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === 'AbortError') throw cause;
    throw cause instanceof Problem ? cause : Problem.lost();
  }
  if (!outcome.response.ok) throw Problem.from(outcome.response.status, outcome.error as ProblemDocument);
  return outcome.data as T;
}
