import { ArrowLeft, Gauge, GitCompareArrows } from 'lucide-react';
import { Popover } from 'radix-ui';
import { useRef } from 'react';
import { Link } from 'wouter';
import { Button, buttonLook } from '../ui/Button';
import { uploads } from '../uploads/uploads';
import { useTitle } from '../ui/useTitle';
import { addressOf } from '../workload/address';
import { formatBytes, formatCount, formatMicros } from './format';
import type { Address } from './index';
import { type DeviceInfo, type Snapshot, useSnapshots } from './queries';
import { nameOf, originNames } from './Sources';

interface Props {
  snapshot: Snapshot;
  device: DeviceInfo;
  address: Address;
}

/** Heading says what is looked at. */
export function Heading({ snapshot, device, address }: Props) {
  useTitle(nameOf(snapshot));
  return (
    <header className="flex flex-wrap items-start gap-x-4 gap-y-3">
      <div className="min-w-0 flex-1 basis-80">
        <h1 className="truncate text-xl font-semibold tracking-tight" title={nameOf(snapshot)}>
          {nameOf(snapshot)}
        </h1>
        <p className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1 text-sm text-muted">
          <Kind kind={snapshot.kind} />
          {snapshot.devices.length > 1 ? (
            <label>
              <span className="sr-only">Device</span>
              <select
                className="rounded border border-line bg-bg px-1.5 py-0.5"
                value={device.device}
                onChange={(event) => address.set({ device: event.target.value })}
              >
                {snapshot.devices.map((d) => (
                  <option key={d.device} value={d.device}>
                    device {d.device}, {formatCount(d.events)} events
                  </option>
                ))}
              </select>
            </label>
          ) : (
            <span>{formatCount(device.events)} events</span>
          )}
          {device.duration_us !== undefined && <span>{formatMicros(device.duration_us)}</span>}
          {device.contradicting_events !== undefined && (
            <span className="text-warn-text">{formatCount(device.contradicting_events)} events contradict the others, so this is an estimate</span>
          )}
          {device.settings.pytorch_cuda_alloc_conf && <code className="font-mono text-xs">{device.settings.pytorch_cuda_alloc_conf}</code>}
        </p>
      </div>
      <Peaks peak={device.peak} />
      <div className="flex gap-2">
        {address.workload && (
          <Link href={`/?${addressOf({ workload: address.workload })}`} className={buttonLook('plain', 'small')}>
            <Gauge size={14} aria-hidden /> Analyze
          </Link>
        )}
        <CompareWith snapshot={snapshot} address={address} />
        <Button size="small" onClick={() => address.set({ snapshot: '' })}>
          <ArrowLeft size={14} aria-hidden /> Another
        </Button>
      </div>
    </header>
  );
}

const kinds: Record<Snapshot['kind'], [look: string, what: string]> = {
  recorded: ['border-line-strong', 'Recorded by PyTorch while a program ran'],
  measured: ['border-line-strong', 'Recorded on the GPU of a worker'],
  emulated: ['border-warn text-warn-text', 'Recorded by a real PyTorch on an emulated card: the allocations are real, the times are not'],
  predicted: ['border-warn text-warn-text', 'Simulated by MemoryMark: no PyTorch ran, and times are estimates'],
};

/** Kind labels how the recording came to be; what no GPU made stands out. */
function Kind({ kind }: { kind: Snapshot['kind'] }) {
  const [look, what] = kinds[kind];
  return (
    <span className={`rounded-full border px-2 text-xs ${look}`} title={what}>
      {kind}
    </span>
  );
}

/** Peaks goes from what was asked for to what was taken from the card. */
function Peaks({ peak }: { peak: DeviceInfo['peak'] }) {
  const amounts = [
    ['requested', peak.requested_bytes],
    ['allocated', peak.allocated_bytes],
    ['reserved', peak.reserved_bytes],
  ] as const;
  return (
    <dl className="flex gap-5" title="The peak of each kind">
      {amounts.map(([name, bytes]) => (
        <div key={name}>
          <dt className="text-xs text-muted">{name}</dt>
          <dd className={`font-mono text-sm ${name === 'requested' ? 'text-accent-text' : ''}`}>{bytes === undefined ? 'unknown' : formatBytes(bytes)}</dd>
        </div>
      ))}
    </dl>
  );
}

function CompareWith({ snapshot, address }: Pick<Props, 'snapshot' | 'address'>) {
  const kept = useSnapshots();
  const input = useRef<HTMLInputElement>(null);
  const others = kept.data?.snapshots.filter((s) => s.id !== snapshot.id) ?? [];
  return (
    <Popover.Root>
      <Popover.Trigger asChild>
        <Button size="small">
          <GitCompareArrows size={14} aria-hidden /> Compare
        </Button>
      </Popover.Trigger>
      <Popover.Portal>
        <Popover.Content
          align="end"
          sideOffset={6}
          aria-label="Compare with another snapshot"
          data-own-keys
          className="z-40 w-80 max-w-[calc(100vw-2rem)] rounded-lg border border-line bg-surface p-3 shadow-xl"
        >
          <p className="px-2 text-sm text-muted">Overlay another recording:</p>
          <ul className="mt-2 max-h-60 overflow-y-auto">
            {others.map((entry) => (
              <li key={entry.id}>
                <Popover.Close
                  className="flex w-full items-baseline gap-2 rounded px-2 py-1.5 text-left text-sm hover:bg-raised"
                  onClick={() => address.set({ with: entry.id })}
                >
                  <span className="min-w-0 flex-1 truncate">{nameOf(entry)}</span>
                  <span className="text-xs text-muted">{originNames[entry.origin] ?? entry.origin}</span>
                </Popover.Close>
              </li>
            ))}
            {others.length === 0 && <li className="px-2 py-1.5 text-sm text-muted">There are no other recordings yet.</li>}
          </ul>
          <input
            ref={input}
            type="file"
            className="sr-only"
            tabIndex={-1}
            aria-label="Snapshot to compare with"
            onChange={(event) => {
              const file = event.target.files?.[0];
              if (file) void uploads.send(file, 'with');
            }}
          />
          <Button size="small" className="mt-2 w-full" onClick={() => input.current?.click()}>
            Choose a file
          </Button>
        </Popover.Content>
      </Popover.Portal>
    </Popover.Root>
  );
}
