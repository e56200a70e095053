import { Tabs } from 'radix-ui';
import { EventList } from './EventList';
import { Flame } from './Flame';
import { Grew } from './Grew';
import type { Address } from './index';
import type { Recording } from './queries';
import type { Range } from './range';
import { ReplayTab } from './ReplayTab';
import type { Under } from './scene';
import { SegmentMap } from './SegmentMap';
import type { Stage } from './stage';
import { StretchTab } from './StretchTab';
import { Top } from './Top';
import type { ComparisonState } from './useComparison';
import type { Finds } from './useFinds';
import { useStage } from './useStage';

interface Props {
  recording: Recording;
  events: number;
  address: Address;
  stage: Stage;
  finds: Finds;
  comparison: ComparisonState;
  selected: Under | null;
  onSelect(under: Under | null): void;
  range: Range | null;
  onSeen(): void; // takes what is seen as the range
}

/** Answers is what can be asked of a recording below its plot: about the cursor, about a range, and about all of it. */
export function Answers({ recording, events, address, stage, finds, comparison, selected, onSelect, range, onSeen }: Props) {
  const cursor = useStage(stage, 'cursor');
  const wanted = address.get('tab') || 'stack';
  const tab = wanted === 'grew' && !comparison.id ? 'stack' : wanted;
  return (
    <Tabs.Root value={tab} onValueChange={(next) => address.set({ tab: next === 'stack' ? '' : next })} className="mt-4">
      <Tabs.List aria-label="More about this moment" className="flex gap-1 overflow-x-auto border-b border-line">
        <Tab value="stack">At the cursor</Tab>
        <Tab value="flame">Flame graph</Tab>
        <Tab value="range">Range</Tab>
        {comparison.id && <Tab value="grew">What grew</Tab>}
        <Tab value="segments">Segments</Tab>
        <Tab value="events">Events</Tab>
        <Tab value="replay">Replay</Tab>
      </Tabs.List>
      <Tabs.Content value="stack" className="pt-3">
        <Top recording={recording} event={cursor} />
      </Tabs.Content>
      <Tabs.Content value="flame" className="pt-3">
        <Flame recording={recording} event={cursor} />
      </Tabs.Content>
      <Tabs.Content value="range" className="pt-3">
        <StretchTab
          recording={recording}
          range={range}
          onGo={(event) => stage.goTo(event)}
          onSeen={onSeen}
          onClear={() => address.set({ range: '' })}
        />
      </Tabs.Content>
      <Tabs.Content value="grew" className="pt-3">
        <Grew recording={recording} other={comparison.id} name={comparison.name} />
      </Tabs.Content>
      <Tabs.Content value="segments" className="pt-3">
        <SegmentMap recording={recording} event={cursor ?? events - 1} stage={stage} onSelect={onSelect} selected={selected} />
      </Tabs.Content>
      <Tabs.Content value="events" className="pt-3">
        <EventList recording={recording} total={events} cursor={cursor ?? 0} query={finds.query} stage={stage} onSelect={onSelect} />
      </Tabs.Content>
      <Tabs.Content value="replay" className="pt-3">
        <ReplayTab recording={recording} address={address} onGo={(event) => stage.goTo(event, 1 / 8)} />
      </Tabs.Content>
    </Tabs.Root>
  );
}

function Tab({ value, children }: { value: string; children: string }) {
  return (
    <Tabs.Trigger
      value={value}
      className="-mb-px rounded-t border-b-2 border-transparent px-3 py-2 text-sm whitespace-nowrap text-muted hover:text-text data-[state=active]:border-accent data-[state=active]:text-text"
    >
      {children}
    </Tabs.Trigger>
  );
}
