import { useEffect, useEffectEvent, useMemo, useRef, useState } from 'react';
import { Problem } from '../api/problem';
import { ErrorBox } from '../ui/ErrorBox';
import { type Around, perform } from './acts';
import { Answers } from './Answers';
import { Comparison } from './Comparison';
import { Details } from './Details';
import { FailureBox } from './FailureBox';
import { Heading } from './Heading';
import type { Address } from './index';
import { KeyHelp } from './KeyHelp';
import { type Act, actOf } from './keys';
import { Legend } from './Legend';
import { Plot } from './Plot';
import { type Recording, type Snapshot, timelineUrl } from './queries';
import { type Range, rangeOf, rangeSeen, rangeText } from './range';
import type { Under } from './scene';
import { Toolbar } from './Toolbar';
import { nameOf } from './Sources';
import { useComparison } from './useComparison';
import { useFinds } from './useFinds';
import { useMoment } from './useMoment';
import { useNewStage, useStage } from './useStage';

interface Props {
  snapshot: Snapshot;
  address: Address;
}

/** Timeline is a snapshot's page. */
export function Timeline(props: Props) {
  const device = deviceOf(props.snapshot, props.address);
  if (!device) return <ErrorBox problem={new Problem(-1, 'The snapshot is empty: nothing was recorded.')} title="Nothing to show" />;
  return <Staged key={device.device} {...props} device={device} />;
}

function deviceOf({ devices }: Snapshot, address: Address) {
  const wanted = address.get('device');
  return devices.find((d) => String(d.device) === wanted) ?? devices.toSorted((a, b) => b.events - a.events)[0];
}

/** initialDetail draws quickly and holds all that a screen shows of most recordings. */
const initialDetail = 8000;

type Device = Snapshot['devices'][number];

function Staged({ snapshot, address, device }: Props & { device: Device }) {
  const stage = useNewStage();
  const recording: Recording = useMemo(() => ({ id: snapshot.id, device: device.device }), [snapshot.id, device.device]);
  const [detail, setDetail] = useState(initialDetail);
  const [byStack, setByStack] = useState(false);
  const [selected, setSelected] = useState<Under | null>(null);
  const [group, setGroup] = useState(-1);
  const [helping, setHelping] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const problem = useStage(stage, 'problem');
  const whole = useStage(stage, 'whole');
  // Of several, the first one is explained best: the rest happened in a process that had failed before.
  const failure = device.out_of_memory?.find((f) => f.explanation?.remedies) ?? device.out_of_memory?.at(-1);
  const finds = useFinds(stage, recording, device.events, address.get('find'), setSelected);
  useMoment(stage, address, finds.settled, failure?.event);
  const comparison = useComparison(stage, recording, address.get('with'));
  const [drawing, setDrawing] = useState(false);
  const rangeAddress = address.get('range');
  const range = useMemo(() => rangeOf(rangeAddress), [rangeAddress]);
  const takeRange = (next: Range) => {
    setDrawing(false);
    address.set({ range: rangeText(next), tab: 'range' });
  };

  const opened = useRef(false);
  useEffect(() => {
    stage.open((w) => timelineUrl(recording, w, detail, byStack), device.events, opened.current);
    opened.current = true;
  }, [stage, recording, device.events, detail, byStack]);
  useEffect(() => stage.setMarks({ range }), [stage, range]);
  useEffect(() => stage.setEmphasis({ selected: selected?.kind === 'shape' ? selected.id : -1, group }), [stage, selected, group]);

  const around: Around = {
    select: setSelected,
    selected,
    finds,
    takeRange: () => takeRange(rangeSeen(stage.view, device.events)),
    focusSearch: () => search.current?.focus(),
    help: () => setHelping(true),
    failures: device.out_of_memory ?? [],
  };
  const act = (wanted: Act) => perform(stage, around, wanted);
  usePlotKeys(act);

  return (
    <>
      <Heading snapshot={snapshot} device={device} address={address} />
      {failure && <FailureBox failure={failure} workload={snapshot.kind === 'predicted' ? address.workload : null} onGo={(event) => stage.goTo(event, 1 / 8)} />}
      {problem && <ErrorBox problem={new Problem(-1, problem)} title="The timeline could not be drawn" />}
      <Comparison comparison={comparison} stage={stage} address={address} />
      <Toolbar
        stage={stage}
        act={act}
        search={search}
        finds={finds}
        detail={detail}
        onDetail={setDetail}
        drawing={drawing}
        onDrawing={setDrawing}
        byStack={byStack}
        onByStack={(next) => {
          setGroup(-1);
          setByStack(next);
        }}
      />
      <div className={`grid gap-4 lg:grid-cols-[minmax(0,1fr)_21rem] ${failure ? '[--above:35rem]' : '[--above:25rem]'}`}>
        <div className="min-w-0">
          <Plot
            stage={stage}
            name={nameOf(snapshot)}
            done={{
              click: setSelected,
              range: (drawn, ended) => (ended ? takeRange(drawn) : stage.setMarks({ range: drawn })),
              drawsRanges: () => drawing,
            }}
          />
          <Answers
            recording={recording}
            events={device.events}
            address={address}
            stage={stage}
            finds={finds}
            comparison={comparison}
            selected={selected}
            onSelect={setSelected}
            range={range}
            onSeen={around.takeRange}
          />
        </div>
        <aside aria-label="Details" className="flex min-w-0 flex-col gap-4">
          <Details recording={recording} whole={whole} under={selected} stage={stage} onClose={() => setSelected(null)} />
          {whole && <Legend whole={whole} group={group} onGroup={setGroup} overlay={comparison.name} />}
        </aside>
      </div>
      <KeyHelp open={helping} onOpenChange={setHelping} />
    </>
  );
}

/** usePlotKeys acts on keys pressed anywhere but where they mean something else. */
function usePlotKeys(act: (wanted: Act) => void) {
  const press = useEffectEvent((event: KeyboardEvent) => {
    const wanted = actOf(event);
    const inside = event.target instanceof Element && event.target.closest('[role=dialog], [role=tablist], [data-own-keys]');
    if (!wanted || inside || event.defaultPrevented) return;
    event.preventDefault();
    act(wanted);
  });
  useEffect(() => {
    const listen = (event: KeyboardEvent) => press(event);
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
}
