import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useEffectEvent, useState } from 'react';
import { useLocation } from 'wouter';
import { site } from '../api/engine';
import { bytes } from '../format';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { ProgressBar } from '../ui/ProgressBar';
import { namedAsSnapshot } from './snapshotFile';
import { type As, type Snapshot, uploads, useUploads } from './uploads';

/** Uploads takes files that are dropped anywhere, on any page, and shows them on their way; snapshots open in the timeline. */
export function Uploads() {
  const { file, sent, problem } = useUploads();
  const over = useDrop();
  useOpening();
  return (
    <>
      {over && <DropHint />}
      {(file || problem) && (
        <div className="sticky top-14 z-20 mx-auto w-full max-w-[1440px] bg-bg px-4 pt-4 sm:px-6">
          {problem && <ErrorBox problem={problem} title="This file could not be opened" onDismiss={uploads.dismiss} />}
          {file && <Progress file={file} sent={sent} />}
        </div>
      )}
    </>
  );
}

function Progress({ file, sent }: { file: File; sent: number }) {
  const arrived = sent >= file.size;
  return (
    <section aria-label="Upload" className="flex items-center gap-4 rounded-lg border border-line bg-surface p-4 text-sm">
      <div className="min-w-0 flex-1">
        <p className="mb-2 flex flex-wrap justify-between gap-x-4" role="status">
          <span className="truncate">{arrived ? `${site === undefined ? 'The server reads' : 'Reading'} ${file.name}…` : `Sending ${file.name}…`}</span>
          {!arrived && (
            <span className="font-mono text-xs text-muted">
              {bytes(sent)} of {bytes(file.size)}
            </span>
          )}
        </p>
        <ProgressBar label={`How much of ${file.name} is sent`} value={arrived ? undefined : sent} max={file.size} />
      </div>
      <Button size="small" onClick={uploads.cancel}>
        Cancel
      </Button>
    </section>
  );
}

/** useOpening goes to what arrived. */
function useOpening() {
  const queries = useQueryClient();
  const [path, navigate] = useLocation();
  const open = useEffectEvent((snapshot: Snapshot, as: As) => {
    queries.setQueryData(['snapshot', snapshot.id], snapshot);
    void queries.invalidateQueries({ queryKey: ['snapshots'] });
    const search = new URLSearchParams(as === 'with' && path.startsWith('/timeline') ? location.search : '');
    search.set(search.size > 0 ? as : 'snapshot', snapshot.id);
    navigate(`/timeline?${search}`);
  });
  useEffect(() => uploads.onOpen((snapshot, as) => open(snapshot, as)), []);
}

/**
 * useDrop takes dropped files; it is whether one is held over the page. A snapshot is taken before the page under it
 * sees it. Other files are the page's if it wants them; if not they are refused in words, and not shown by the browser.
 */
function useDrop(): boolean {
  const [over, setOver] = useState(false);
  useEffect(() => {
    const abort = new AbortController();
    const on = { signal: abort.signal };
    const fileOf = (event: DragEvent) => event.dataTransfer?.files[0];
    window.addEventListener(
      'drop',
      (event) => {
        setOver(false);
        const file = fileOf(event);
        if (!file || !namedAsSnapshot(file.name)) return;
        event.preventDefault();
        event.stopPropagation();
        void uploads.send(file);
      },
      { capture: true, ...on },
    );
    window.addEventListener(
      'drop',
      (event) => {
        const file = fileOf(event);
        if (!file || event.defaultPrevented) return;
        event.preventDefault();
        void uploads.send(file);
      },
      on,
    );
    window.addEventListener(
      'dragover',
      (event) => {
        if (!event.dataTransfer?.types.includes('Files')) return;
        event.preventDefault();
        setOver(true);
      },
      on,
    );
    window.addEventListener('dragleave', (event) => event.relatedTarget === null && setOver(false), on);
    return () => abort.abort();
  }, []);
  return over;
}

function DropHint() {
  return (
    <div aria-hidden className="pointer-events-none fixed inset-4 z-50 grid place-items-center rounded-xl border-2 border-dashed border-accent bg-bg/85">
      <p className="text-lg font-semibold text-accent-text">Drop a snapshot to open it in the timeline</p>
    </div>
  );
}
