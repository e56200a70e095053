// Files on their way to the server. One at a time; what is sent stays when one goes to another page.
import { useSyncExternalStore } from 'react';
import { answer, api, type Schemas } from '../api/client';
import { Problem, type ProblemDocument } from '../api/problem';
import { upload } from '../api/transport';
import { refusal, smaller, unfit } from './snapshotFile';

export type Snapshot = Schemas['Snapshot'];

/** As says what a file is opened as: the snapshot to look at, or one to compare it with. */
export type As = 'snapshot' | 'with';

export interface UploadState {
  file: File | null; // that is being sent
  sent: number; // bytes
  problem: Problem | null;
}

const idle: UploadState = { file: null, sent: 0, problem: null };
const listeners = new Set<() => void>();
let state = idle;
let opened: (snapshot: Snapshot, as: As) => void = () => {};
let abort = new AbortController();

function set(change: Partial<UploadState>) {
  state = { ...state, ...change };
  for (const listener of listeners) listener();
}

export const uploads = {
  /** send sends a file, in place of one that is on its way, and opens it. */
  send: async (file: File, as: As = 'snapshot') => {
    abort.abort();
    const { signal } = (abort = new AbortController());
    set({ ...idle, file });
    try {
      const { max_upload_bytes: limit } = await answer(api.GET('/v1/snapshots', { signal }));
      const refused = await refusal(file, limit);
      if (refused) throw refused;
      const snapshot = await transfer(file, signal, (sent) => set({ sent }));
      if (signal.aborted) return;
      set(idle);
      opened(snapshot, as);
    } catch (error) {
      if (!signal.aborted) set({ ...idle, problem: Problem.of(error) });
    }
  },
  cancel: () => {
    abort.abort();
    set(idle);
  },
  dismiss: () => set({ problem: null }),
  /** onOpen is told of each file that arrived. */
  onOpen: (open: typeof opened) => {
    opened = open;
    return () => {
      opened = () => {};
    };
  },
};

export function useUploads(): UploadState {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => state,
  );
}

async function transfer(file: File, signal: AbortSignal, onSent: (bytes: number) => void): Promise<Snapshot> {
  const { status, body } = await upload(`/v1/snapshots?name=${encodeURIComponent(file.name)}`, file, signal, onSent).catch((cause: unknown) => {
    throw signal.aborted || cause instanceof Problem ? cause : Problem.lost();
  });
  if (status === 201) return body as Snapshot;
  const problem = Problem.from(status, body as ProblemDocument | undefined);
  if (status === 413) throw new Problem(413, `the file ${file.name} is ${problem.message}`, [], smaller);
  throw status === 422 ? unfit(`the file ${file.name} is ${problem.message}`) : problem;
}
