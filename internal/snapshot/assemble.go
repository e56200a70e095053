package snapshot

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"memorymark/internal/trace"
)

// snapshot makes traces from the object that the pickle made: a dict since
// PyTorch 2.0, before that the list of segments alone.
func (m *machine) snapshot(top value) *Snapshot {
	if m.err != nil {
		return nil
	}
	a := assembler{machine: m}
	switch top.kind {
	case kList:
		a.segmentsOf(top)
	case kDict:
		a.topLevel(top)
	default:
		m.fail("the file holds %s and not a snapshot", top.kind)
	}
	if m.err != nil {
		return nil
	}
	return a.finish()
}

// assembler distributes the records of a file over the devices.
type assembler struct {
	*machine
	devices  []*trace.Trace
	settings trace.Settings
	used     int64 // events up to here are in a trace
}

// at returns the trace of a device.
func (a *assembler) at(device int) *trace.Trace {
	for len(a.devices) <= device {
		a.devices = append(a.devices, trace.New(len(a.devices), a.tables))
	}
	return a.devices[device]
}

func (a *assembler) topLevel(top value) {
	var f fields
	if top.ref != none {
		f = *a.sort(a.dicts[top.ref])
	}
	known := keys(keySegments, keyDeviceTraces, keyAllocatorSettings, keyExternalAnnotations)
	if f.have&known == 0 {
		a.fail("the file holds a dict without segments and device_traces: not a snapshot")
		return
	}
	a.noteUnknown("snapshot", &f, known)
	if f.has(keyDeviceTraces) {
		a.tracesOf(f.val[keyDeviceTraces])
	}
	if f.has(keySegments) {
		a.segmentsOf(f.val[keySegments])
	}
	if f.has(keyAllocatorSettings) {
		a.settingsOf(f.val[keyAllocatorSettings])
	}
	if f.has(keyExternalAnnotations) {
		a.annotationsOf(f.val[keyExternalAnnotations])
	}
}

// tracesOf gives each device its events.
func (a *assembler) tracesOf(v value) {
	outer := a.listOf(v, kList)
	if outer.len() > maxDevices {
		a.fail("%d devices: the limit is %d", outer.len(), maxDevices)
		return
	}
	for i := range outer.len() {
		l := a.listOf(outer.at(i), kEvent)
		a.at(int(i)).Events = a.eventsOf(l)
	}
}

// eventsOf returns the events of a list: the range itself, if it is one and no
// other list has used it.
func (a *assembler) eventsOf(l *list) []trace.Event {
	n := l.len()
	if l.items == nil && l.start >= a.used {
		a.used = l.start + n
		return a.events[l.start:a.used:a.used]
	}
	if a.charge(n * eventSize); a.err != nil {
		return nil
	}
	events := make([]trace.Event, n)
	for i := range n {
		events[i] = a.events[l.at(i).ref]
	}
	return events
}

// segmentsOf gives each device its segments, by address. A device that has
// none keeps Final nil: PyTorch writes an empty list for one that was never
// used, and so does Write for a trace whose outcome is not known.
func (a *assembler) segmentsOf(v value) {
	l := a.listOf(v, kSegment)
	for i := range l.len() {
		s := a.segments[l.at(i).ref]
		s.Blocks = a.blocksOf(&s)
		t := a.at(s.device)
		if a.charge(segmentSize); a.err != nil {
			return
		}
		t.Final = append(t.Final, s.Segment)
	}
	for _, t := range a.devices {
		slices.SortStableFunc(t.Final, func(a, b trace.Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	}
}

// blocksOf returns the blocks of a segment with what older files leave out:
// addresses are running sums, and a block is as large as was asked for unless
// it says otherwise.
func (a *assembler) blocksOf(s *segment) []trace.Block {
	if s.blocks.kind == kEmpty {
		return nil
	}
	l := a.listOf(s.blocks, kBlock)
	if a.charge(l.len() * blockSize); a.err != nil {
		return nil
	}
	blocks := make([]trace.Block, l.len())
	next := s.Addr
	for i := range blocks {
		b := a.blocks[l.at(int64(i)).ref]
		if b.noAddr {
			b.Addr = next
		}
		if b.noRequested {
			b.Requested = b.Size
		}
		next = b.Addr + uint64(b.Size)
		blocks[i] = b.Block
	}
	return blocks
}

func (a *assembler) annotationsOf(v value) {
	l := a.listOf(v, kAnnotation)
	for i := range l.len() {
		mark := a.annotations[l.at(i).ref]
		t := a.at(mark.device)
		if a.charge(annotationSize); a.err != nil {
			return
		}
		t.Marks = append(t.Marks, mark.Mark)
	}
}

// settingsOf reads allocator_settings. Numeric settings that the simulation
// does not use are kept.
func (a *assembler) settingsOf(v value) {
	if v.kind != kDict {
		a.fail("allocator_settings is %s and not a dict", v.kind)
		return
	}
	if v.ref == none {
		return
	}
	f := *a.sort(a.dicts[v.ref])
	f.of = kDict
	s := &a.settings
	if f.has(keyAllocConf) {
		s.Raw = a.text(&f, keyAllocConf)
	}
	if f.has(keyMaxSplitSize) {
		s.MaxSplitSize = max(0, a.int(&f, keyMaxSplitSize)) // -1 is no limit
	}
	if f.has(keyGCThreshold) {
		s.GCThreshold = a.float(&f, keyGCThreshold)
	}
	if f.has(keyExpandableSegments) {
		s.ExpandableSegments = a.bool(&f, keyExpandableSegments)
	}
	if f.has(keyRoundupDivisions) {
		a.roundupOf(f.val[keyRoundupDivisions])
	}
	a.otherSettings(&f)
}

func (a *assembler) otherSettings(f *fields) {
	rest := f.extra[:0]
	for i := 0; i < len(f.extra); i += 2 {
		switch v := f.extra[i+1]; v.kind {
		case kInt, kBool:
			if a.settings.Other == nil {
				a.settings.Other = make(map[string]int64)
			}
			a.charge(settingSize)
			a.settings.Other[a.strings[f.extra[i].ref]] = v.ref
		default:
			rest = append(rest, f.extra[i], v)
		}
	}
	f.extra = rest
	a.noteUnknown("allocator_settings", f,
		keys(keyAllocConf, keyMaxSplitSize, keyGCThreshold, keyExpandableSegments, keyRoundupDivisions))
}

// roundupOf reads roundup_power2_divisions: the keys are powers of two in MiB,
// as strings.
func (a *assembler) roundupOf(v value) {
	if v.kind != kDict {
		a.fail("roundup_power2_divisions is %s and not a dict", v.kind)
		return
	}
	if v.ref == none {
		return
	}
	items := a.dicts[v.ref]
	for i := 0; i+1 < len(items); i += 2 {
		key := a.strings[items[i].ref]
		n, err := strconv.ParseUint(key, 10, 16)
		if err != nil || bits.OnesCount64(n) != 1 || items[i+1].kind != kInt {
			a.addUnknown("roundup_power2_divisions." + key)
			continue
		}
		a.settings.RoundupDivisions[bits.TrailingZeros64(n)] = items[i+1].ref
	}
}

func (a *assembler) float(f *fields, key int64) float64 {
	if f.val[key].kind == kInt {
		return float64(f.val[key].ref)
	}
	if f.val[key].kind != kFloat {
		a.wrongType(f, key, "a float")
	}
	return math.Float64frombits(uint64(f.val[key].ref))
}

// finish completes the traces, now that each has all its parts.
func (a *assembler) finish() *Snapshot {
	for _, t := range a.devices {
		if a.odd {
			a.removeOdd(t)
		}
		t.Settings = a.settings
		a.nameStreams(t)
		t.Link()
		t.LinkMarks()
	}
	s := &Snapshot{Devices: a.devices, Protocol: a.proto, Memory: a.kept - int64(cap(a.stack)+cap(a.memo))*valueSize}
	for name := range a.unknown {
		s.Unknown = append(s.Unknown, name)
	}
	slices.Sort(s.Unknown)
	return s
}

// removeOdd removes events of unknown actions, and turns annotations into
// marks: in PyTorch 2.4 they are events, with a frame whose file is the name
// and whose function is the begin or end.
func (a *assembler) removeOdd(t *trace.Trace) {
	t.Events = slices.DeleteFunc(t.Events, func(e trace.Event) bool {
		if e.Action == userDefined {
			if frames := t.Stacks.IDs(e.Stack); len(frames) > 0 {
				f := t.Stacks.Frame(frames[0])
				t.Marks = append(t.Marks, trace.Mark{Name: f.File, Time: e.Time, End: f.Name == vocabulary[wordEnd]})
			}
		}
		return e.Action == 0 || e.Action == userDefined
	})
}

// nameStreams numbers the streams of a trace in the order in which it uses
// them.
func (a *assembler) nameStreams(t *trace.Trace) {
	if len(a.streams) == 1 {
		return
	}
	number := map[uint16]uint16{0: 0}
	rename := func(stream *uint16) {
		n, ok := number[*stream]
		if !ok {
			n = uint16(len(t.Streams)) // a file cannot have more
			t.Streams = append(t.Streams, a.streams[*stream])
			number[*stream] = n
			a.charge(streamSize)
		}
		*stream = n
	}
	for i := range t.Final {
		rename(&t.Final[i].Stream)
	}
	for i := range t.Events {
		rename(&t.Events[i].Stream)
	}
}
