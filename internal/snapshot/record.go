package snapshot

import (
	"math"

	"memorymark/internal/trace"
)

// The memory of the records, with the maps that find them.
const (
	eventSize      = 40
	blockSize      = 64
	segmentSize    = 128
	annotationSize = 64
	frameSize      = 192
	noteSize       = 256
	streamSize     = 8
	settingSize    = 64
)

const (
	maxDevices = 128
	maxStreams = math.MaxUint16
)

// records is what the dicts of a file have become so far. The events of all
// devices share one slice, in the order of the file; those of a device are a
// range of it.
type records struct {
	tables      *trace.Tables
	notes       notes
	streams     []uint64 // handles
	streamOf    map[uint64]uint16
	lastStream  uint16
	events      []trace.Event
	blocks      []block
	segments    []segment
	annotations []annotation
	histories   []history
	unknown     map[string]struct{}
	frameCount  int64 // different frames
	frameRefs   int64 // frames in all stacks
	odd         bool  // some event has an action that is not trace's
}

// block is a trace.Block with what older files leave out.
type block struct {
	trace.Block
	noAddr, noRequested bool
}

// segment is a trace.Segment before its blocks and its device are known.
type segment struct {
	trace.Segment
	device int
	blocks value
}

type annotation struct {
	trace.Mark
	device int
}

// history is an entry of the list that PyTorch 2.0 kept for each block.
type history struct {
	realSize int64
	stack    trace.StackID
}

func newRecords() records {
	return records{
		tables: trace.NewTables(), notes: newNotes(),
		streams: []uint64{0}, streamOf: map[uint64]uint16{0: 0}, unknown: make(map[string]struct{}),
	}
}

// fields is a dict sorted by key.
type fields struct {
	of    kind // the record it is
	have  keySet
	val   [numKeys]value
	extra []value // keys that are not in the vocabulary, and their values
}

// sort sorts keys and values in turn into the fields of the machine. As in
// Python, the last of equal keys counts.
func (m *machine) sort(items []value) *fields {
	f := &m.fields
	f.have, f.extra = 0, f.extra[:0]
	for i := 0; i+1 < len(items); i += 2 {
		key, v := &items[i], &items[i+1]
		if v.kind == kOwn {
			*v = m.memo[v.ref]
		}
		switch {
		case key.kind != kString:
			m.fail("a dict key is %s and not a string", m.take(*key).kind)
		case key.ref < numKeys:
			f.have |= 1 << key.ref
			f.val[key.ref] = *v
		default:
			f.extra = append(f.extra, *key, *v)
		}
	}
	return f
}

func (f *fields) has(key int64) bool { return f.have&(1<<key) != 0 }

// setRecord adds items to a dict. While the keys do not say which record it is
// the items are kept; then the record is made and later items go there.
func (m *machine) setRecord(dict *value, items []value) {
	f := m.sort(items)
	if dict.kind == kDict && dict.ref != none && f.have.recognise() != kDict {
		f = m.sort(append(m.dicts[dict.ref], items...))
		m.dicts[dict.ref] = nil
	}
	if !m.makeRecord(dict, f) {
		m.keepItems(dict, items)
	}
}

// makeRecord turns a dict into the record that its fields belong to, or adds the
// fields to an existing one. It reports false if the keys belong to no record.
func (m *machine) makeRecord(dict *value, f *fields) bool {
	fresh := dict.kind == kDict
	f.of = dict.kind
	if fresh {
		f.of = f.have.recognise()
	}
	switch f.of {
	case kEvent:
		if fresh && len(m.events) == cap(m.events) {
			m.events = extend(m, m.events)
		}
		m.setEvent(slot(&m.events, dict, fresh), f, fresh)
	case kFrame:
		m.setFrame(dict, f, fresh)
	case kBlock:
		m.setBlock(slot(&m.blocks, dict, fresh), f, fresh)
	case kSegment:
		m.setSegment(slot(&m.segments, dict, fresh), f)
	case kAnnotation:
		m.setAnnotation(slot(&m.annotations, dict, fresh), f)
	case kHistory:
		m.setHistory(slot(&m.histories, dict, fresh), f)
	case kDict:
		return false
	default:
		m.fail("items set on %s", dict.kind)
		return true
	}
	dict.kind = f.of
	if f.have&^knownKeys[f.of] != 0 || len(f.extra) > 0 {
		m.noteUnknown(dictNames[f.of], f, knownKeys[f.of])
	}
	return true
}

// slot returns the record of a dict, a new one if it is fresh.
func slot[T any](table *[]T, dict *value, fresh bool) *T {
	if fresh {
		var zero T
		*table = append(*table, zero)
		dict.ref = int64(len(*table) - 1)
	}
	return &(*table)[dict.ref]
}

// keepItems stores the items of a dict that is not recognised.
func (m *machine) keepItems(dict *value, items []value) {
	m.charge(int64(len(items)) * valueSize)
	if dict.ref == none {
		m.charge(64)
		m.dicts = append(m.dicts, nil)
		dict.ref = int64(len(m.dicts) - 1)
	}
	m.dicts[dict.ref] = append(m.dicts[dict.ref], items...)
}

// noteUnknown records the keys that are not in known.
func (m *machine) noteUnknown(dict string, f *fields, known keySet) {
	for k := range numKeys {
		if f.has(k) && known&(1<<k) == 0 {
			m.addUnknown(dict + "." + m.strings[k])
		}
	}
	for i := 0; i < len(f.extra); i += 2 {
		m.addUnknown(dict + "." + m.strings[f.extra[i].ref])
	}
}

func (m *machine) addUnknown(name string) {
	if _, ok := m.unknown[name]; !ok {
		m.charge(int64(len(name)) + 64)
		m.unknown[name] = struct{}{}
	}
}

func (m *machine) setEvent(e *trace.Event, f *fields, fresh bool) {
	if fresh {
		if len(m.events) > m.limits.Events {
			m.fail("%w: it has more than %d events", ErrTooLarge, m.limits.Events)
		}
		e.ID = trace.None
	}
	if f.has(keyAction) {
		e.Action = m.action(f)
	}
	if f.has(keyAddr) {
		e.Addr = m.bits(f, keyAddr)
	}
	if f.has(keySize) {
		e.Size = m.size(f, keySize)
	}
	if f.has(keyTimeUS) {
		e.Time = m.int(f, keyTimeUS)
	}
	if f.has(keyStream) {
		e.Stream = m.stream(f)
	}
	if f.has(keyFrames) {
		e.Stack = m.frames(f)
	}
	if f.has(keyFrames) != fresh || f.saysMore() {
		e.Note = m.setNote(e.Note, f, fresh)
	}
}

func (m *machine) setBlock(b *block, f *fields, fresh bool) {
	if fresh {
		m.charge(blockSize)
		b.ID, b.noAddr, b.noRequested = trace.None, true, true
	}
	if f.has(keyAddress) {
		b.Addr, b.noAddr = m.bits(f, keyAddress), false
	}
	if f.has(keySize) {
		b.Size = m.size(f, keySize)
	}
	if f.has(keyRequestedSize) {
		b.Requested, b.noRequested = m.size(f, keyRequestedSize), false
	}
	if f.has(keyState) {
		b.State = trace.State(m.word(f, keyState, wordInactive, wordPendingFree))
	}
	if f.has(keyFrames) {
		b.Stack = m.frames(f)
	}
	if f.has(keyForwardFrames) {
		b.Note = m.setNote(b.Note, f, false)
	}
	if f.has(keyHistory) {
		if l := m.listOf(f.val[keyHistory], kHistory); l.len() > 0 {
			h := m.histories[l.at(0).ref]
			b.Requested, b.Stack, b.noRequested = h.realSize, h.stack, false
		}
	}
}

func (m *machine) setHistory(h *history, f *fields) {
	if f.has(keyRealSize) {
		m.charge(blockSize)
		h.realSize = m.size(f, keyRealSize)
	}
	if f.has(keyFrames) {
		h.stack = m.frames(f)
	}
}

func (m *machine) setSegment(s *segment, f *fields) {
	m.charge(segmentSize)
	if f.has(keyDevice) {
		s.device = m.device(f)
	}
	if f.has(keyAddress) {
		s.Addr = m.bits(f, keyAddress)
	}
	if f.has(keyTotalSize) {
		s.Size = m.size(f, keyTotalSize)
	}
	if f.has(keyStream) {
		s.Stream = m.stream(f)
	}
	if f.has(keySegmentType) {
		s.Small = m.word(f, keySegmentType, wordSmall, wordLarge) == 0
	}
	if f.has(keySegmentPoolID) {
		s.Pool = m.poolID(f, keySegmentPoolID)
	}
	if f.has(keyIsExpandable) {
		s.Expandable = m.bool(f, keyIsExpandable)
	}
	if f.has(keyFrames) {
		s.Stack = m.frames(f)
	}
	if f.has(keyForwardFrames) {
		s.Note = m.setNote(s.Note, f, false)
	}
	if f.has(keyBlocks) {
		s.blocks = f.val[keyBlocks]
	}
}

func (m *machine) setAnnotation(a *annotation, f *fields) {
	m.charge(annotationSize)
	if f.has(keyName) {
		a.Name = m.text(f, keyName)
	}
	if f.has(keyStage) {
		a.End = m.word(f, keyStage, wordStart, wordEnd) == 1
	}
	if f.has(keyDevice) {
		a.device = m.device(f)
	}
	if f.has(keyTimeUS) {
		a.Time = m.int(f, keyTimeUS)
	}
}

// setFrame replaces a frame by one that has the fields as well, since equal
// frames are stored once.
func (m *machine) setFrame(dict *value, f *fields, fresh bool) {
	var frame trace.Frame
	if !fresh {
		frame = m.tables.Stacks.Frame(trace.FrameID(dict.ref))
	}
	if f.has(keyFilename) {
		frame.File = m.text(f, keyFilename)
	}
	if f.has(keyName) {
		frame.Name = m.text(f, keyName)
	}
	if f.has(keyLine) {
		frame.Line = int(m.bits(f, keyLine)) // PyTorch says 2^64-1 if it has none
	}
	if f.have&fxKeys != 0 {
		frame.FX = m.fx(frame.FX, f)
	}
	dict.ref = int64(m.tables.Stacks.AddFrame(frame))
	if dict.ref == m.frameCount {
		m.frameCount++
		m.charge(frameSize)
	}
}

func (m *machine) fx(old *trace.FX, f *fields) *trace.FX {
	var fx trace.FX
	if old != nil {
		fx = *old
	}
	if f.has(keyFXNodeOp) {
		fx.Op = m.text(f, keyFXNodeOp)
	}
	if f.has(keyFXNodeName) {
		fx.Name = m.text(f, keyFXNodeName)
	}
	if f.has(keyFXNodeTarget) {
		fx.Target = m.text(f, keyFXNodeTarget)
	}
	if f.has(keyFXOriginalTrace) {
		fx.Trace = m.text(f, keyFXOriginalTrace)
	}
	if fx == (trace.FX{}) {
		return nil
	}
	return &fx
}
