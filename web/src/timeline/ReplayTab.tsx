import { type FormEvent, useState } from 'react';
import { Problem } from '../api/problem';
import { share } from '../format';
import { Button } from '../ui/Button';
import { ErrorBox } from '../ui/ErrorBox';
import { SelectInput, TextInput } from '../ui/Inputs';
import { formatBytes, formatCount } from './format';
import type { Address } from './index';
import { type Recording, type Replay, useReplay } from './queries';
import { addressKey, commandOf, type Flag, flags, replayQuery, whatIfOf } from './replay';

interface Props {
  recording: Recording;
  address: Address;
  onGo(event: number): void;
}

/** ReplayTab sends the recorded requests through the simulated allocator again, with other settings. */
export function ReplayTab({ recording, address, onGo }: Props) {
  const asked = whatIfOf(address.get);
  const query = replayQuery(asked);
  const readable = 'wrong' in query ? null : query;
  const replay = useReplay(recording, readable);
  return (
    <section aria-label="Replay">
      <p className="text-sm text-muted">
        The same requests through a simulation of PyTorch's allocator with other settings: would they have fitted, and what would have been reserved? What is left
        empty is as recorded.
      </p>
      <SettingsForm key={JSON.stringify(asked)} asked={asked} wrong={'wrong' in query ? query : undefined} address={address} />
      {replay.isError && (
        <div className="mt-4">
          <ErrorBox problem={Problem.of(replay.error)} title="This cannot be replayed" />
        </div>
      )}
      {replay.data && !replay.isError && (
        <div className={`mt-5 transition-opacity ${replay.isPlaceholderData ? 'opacity-60' : ''}`} aria-busy={replay.isPlaceholderData}>
          <Verdict replay={replay.data} onGo={onGo} />
          <Figures replay={replay.data} />
          <pre className="mt-4 rounded border border-line bg-bg p-3 font-mono text-xs whitespace-pre-wrap">{commandOf(asked)}</pre>
        </div>
      )}
    </section>
  );
}

const hints: Record<Flag, [placeholder: string, help: string]> = {
  limit: ['24GiB', 'the most the allocator may reserve'],
  'expandable-segments': ['', 'expandable_segments of PYTORCH_CUDA_ALLOC_CONF'],
  'max-split-size': ['128MiB', 'max_split_size_mb; at least 20MiB'],
  'gc-threshold': ['0.8', 'garbage_collection_threshold, between 0 and 1; needs a limit'],
  roundup: ['4', 'roundup_power2_divisions, a power of two'],
  'graph-pool': ['2GiB', 'what the pool of CUDA graphs starts with'],
};

interface FormProps {
  asked: ReturnType<typeof whatIfOf>;
  wrong?: { wrong: Flag; why: string };
  address: Address;
}

/** SettingsForm has the words of the command line's flags; Enter or the button asks. */
function SettingsForm({ asked, wrong, address }: FormProps) {
  const [typed, setTyped] = useState(asked);
  const set = (values: typeof asked) => address.set(Object.fromEntries(flags.map((flag) => [addressKey(flag), values[flag].trim()])));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    set(typed);
  };
  return (
    <form onSubmit={submit} data-own-keys aria-label="Settings of the allocator" className="mt-4 flex flex-wrap items-start gap-x-3 gap-y-4">
      {flags.map((flag) => {
        const [placeholder, help] = hints[flag];
        const common = { label: flag, help, wrong: wrong?.wrong === flag ? wrong.why : undefined, value: typed[flag] };
        const onChange = (value: string) => setTyped({ ...typed, [flag]: value });
        return (
          <div key={flag} className="w-[calc(50%-0.375rem)] sm:w-36">
            {flag === 'expandable-segments' ? (
              <SelectInput {...common} options={{ '': 'as recorded', true: 'on', false: 'off' }} onChange={onChange} />
            ) : (
              <TextInput {...common} placeholder={placeholder} onChange={onChange} />
            )}
          </div>
        );
      })}
      <Button type="submit" look="primary" className="mt-[1.375rem]">
        Replay
      </Button>
    </form>
  );
}

function Verdict({ replay, onGo }: { replay: Replay; onGo(event: number): void }) {
  const { failure, first_difference: parts, fragmentation: lost } = replay;
  return (
    <div className="text-sm">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <strong className={`font-semibold ${replay.fits ? 'text-accent-text' : 'text-bad-text'}`}>{replay.fits ? 'Fits' : 'Does not fit'}</strong>
        <code className="font-mono text-xs">{replay.settings}</code>
        {replay.limit_bytes !== undefined && <span className="text-muted">within {formatBytes(replay.limit_bytes)}</span>}
        {failure && (
          <Button size="small" onClick={() => onGo(failure.event)}>
            Show event {formatCount(failure.event)}
          </Button>
        )}
      </p>
      {failure && <p className="mt-2 max-w-3xl">{reasonOf(failure)}</p>}
      {replay.fits && replay.out_of_memory_event !== undefined && (
        <p className="mt-2 max-w-3xl">
          The recording ran out of memory at event {formatCount(replay.out_of_memory_event)} and does not show what the program would have requested next, so the whole run may
          need more.
        </p>
      )}
      {lost && (
        <p className="mt-2 max-w-3xl text-muted">
          Fragmentation after event {formatCount(lost.event)}: {formatBytes(lost.free_bytes)} free in {formatCount(lost.free_pieces)} pieces, the largest{' '}
          {formatBytes(lost.largest_free_bytes)}; {formatBytes(lost.stuck_bytes)}, {share(lost.score)} of what is reserved, is stuck.
        </p>
      )}
      <p className={`mt-2 max-w-3xl ${parts ? 'text-warn-text' : 'text-muted'}`}>
        {parts
          ? `With the recorded settings, the simulation differs from the recording at event ${formatCount(parts.event)} (${parts.recorded}, simulated ${parts.simulated}), so treat this as an estimate.`
          : 'With the recorded settings, the simulation matches the recording: every address and every segment.'}
      </p>
    </div>
  );
}

function reasonOf({ event, requested_bytes, reserved_bytes, allocated_bytes, place }: NonNullable<Replay['failure']>): string {
  if (requested_bytes === 0) return `What was live when the recording began needs ${formatBytes(reserved_bytes)} of segments.`;
  const at = place.user_frame ?? place.model_frame;
  const where = at ? `, at ${at.file}:${at.line} ${at.function}` : '';
  return (
    `Event ${formatCount(event)} requests ${formatBytes(requested_bytes)} with ${formatBytes(reserved_bytes)} reserved, ` +
    `of which ${formatBytes(allocated_bytes)} is allocated${where}.`
  );
}

const figures = [
  ['peak requested', 'peak_requested'],
  ['peak allocated', 'peak_allocated'],
  ['peak reserved', 'peak_reserved'],
  ['reserved at the end', 'end_reserved'],
  ['segments added', 'segments_requested_bytes'],
] as const;

/** Figures puts the replay next to the recording; without another setting there is only the recording. */
function Figures({ replay }: { replay: Replay }) {
  const { recorded } = replay;
  return (
    <table className="mt-4 w-full max-w-lg text-sm">
      <caption className="sr-only">The replay beside the recording</caption>
      <thead className="text-xs text-muted">
        <tr>
          <td />
          {recorded && <Head>with these settings</Head>}
          <Head>as recorded</Head>
        </tr>
      </thead>
      <tbody>
        {figures.map(([name, key]) => (
          <tr key={key} className="border-t border-line">
            <th scope="row" className="py-1 text-left font-normal text-muted">
              {name}
            </th>
            {recorded && <td className="py-1 pl-3 text-right font-mono text-xs">{formatBytes(replay[key])}</td>}
            <td className="py-1 pl-3 text-right font-mono text-xs">{formatBytes((recorded ?? replay)[key])}</td>
          </tr>
        ))}
        <tr className="border-t border-line">
          <th scope="row" className="py-1 text-left font-normal text-muted" title="how often the allocator had to free cached memory and retry">
            retries
          </th>
          {recorded && <td className="py-1 pl-3 text-right font-mono text-xs">{formatCount(replay.retries)}</td>}
          <td className="py-1 pl-3 text-right font-mono text-xs">{formatCount((recorded ?? replay).retries)}</td>
        </tr>
      </tbody>
    </table>
  );
}

function Head({ children }: { children: string }) {
  return (
    <th scope="col" className="pb-1 pl-3 text-right font-normal">
      {children}
    </th>
  );
}
