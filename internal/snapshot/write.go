package snapshot

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"memorymark/internal/trace"
)

// Write writes a snapshot as PyTorch 2.11 does: the keys, their order and
// types are those of torch/csrc/cuda/Module.cpp (v2.11.0,
// THCPModule_memorySnapshot), the pickle protocol is 4. Unlike PyTorch it
// shares equal stacks, so that files are smaller.
//
// The settings are those of the first device. Keys of newer versions (pool_id)
// are written if they were recorded; Unknown is not.
func Write(w io.Writer, s *Snapshot) error {
	out := writer{
		pickler: pickler{w: bufio.NewWriterSize(w, 64<<10), slotOf: make(map[string]uint32)},
		Tables:  trace.NewTables(),
	}
	for i, t := range s.Devices {
		if i > 0 && t.Tables != out.Tables {
			return fmt.Errorf("write snapshot: devices 0 and %d do not share tables", i)
		}
		out.Tables = t.Tables
	}
	out.frames = make(map[trace.FrameID]uint32)
	out.stacks = make(map[trace.StackID]uint32)
	out.forward = make(map[trace.NoteID]uint32)
	out.snapshot(s)
	if err := out.w.Flush(); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// writer writes the parts of a snapshot. The maps hold the memo slots of what
// is written once and shared.
type writer struct {
	pickler
	*trace.Tables
	words   [numWords]uint32 // 0 is not written yet: that slot is never a word's
	frames  map[trace.FrameID]uint32
	stacks  map[trace.StackID]uint32
	forward map[trace.NoteID]uint32
}

func (w *writer) snapshot(s *Snapshot) {
	w.op1(opProto, 4)
	w.dict(func() {
		w.key(keySegments)
		w.segments(s.Devices)
		w.key(keyDeviceTraces)
		w.list(len(s.Devices), func(i int) {
			t := s.Devices[i]
			w.list(len(t.Events), func(i int) { w.event(t, &t.Events[i]) })
		})
		w.key(keyAllocatorSettings)
		var settings trace.Settings
		if len(s.Devices) > 0 {
			settings = s.Devices[0].Settings
		}
		w.settings(&settings)
		w.key(keyExternalAnnotations)
		w.annotations(s.Devices)
	})
	w.op(opStop)
}

// key writes a word of the vocabulary. Most of a file is keys, so their slots
// are indexed by number.
func (w *writer) key(key int64) {
	if slot := w.words[key]; slot != 0 {
		w.get(slot)
		return
	}
	w.string(vocabulary[key])
	w.words[key] = w.slotOf[vocabulary[key]]
}

func (w *writer) segments(devices []*trace.Trace) {
	type place struct{ device, index int }
	var places []place
	for i, t := range devices {
		for j := range t.Final {
			places = append(places, place{i, j})
		}
	}
	w.list(len(places), func(i int) {
		t := devices[places[i].device]
		w.segment(t, &t.Final[places[i].index])
	})
}

func (w *writer) segment(t *trace.Trace, s *trace.Segment) {
	var allocated, active, requested int64
	for i := range s.Blocks {
		switch b := &s.Blocks[i]; b.State {
		case trace.Allocated:
			allocated += b.Size
			fallthrough
		case trace.PendingFree:
			active += b.Size
			requested += b.Requested
		}
	}
	kind := wordLarge
	if s.Small {
		kind = wordSmall
	}
	w.dict(func() {
		w.key(keyDevice)
		w.int(int64(t.Device))
		w.key(keyAddress)
		w.uint(s.Addr)
		w.key(keyTotalSize)
		w.int(s.Size)
		w.key(keyAllocatedSize)
		w.int(allocated)
		w.key(keyActiveSize)
		w.int(active)
		w.key(keyRequestedSize)
		w.int(requested)
		w.key(keyStream)
		w.int(int64(t.Streams[s.Stream]))
		w.key(keySegmentType)
		w.key(kind)
		w.key(keySegmentPoolID)
		w.pool(s.Pool)
		w.key(keyIsExpandable)
		w.bool(s.Expandable)
		w.context(s.Stack, s.Note)
		w.key(keyBlocks)
		w.list(len(s.Blocks), func(i int) { w.block(&s.Blocks[i]) })
	})
}

func (w *writer) block(b *trace.Block) {
	w.dict(func() {
		w.key(keyAddress)
		w.uint(b.Addr)
		w.key(keySize)
		w.int(b.Size)
		w.key(keyRequestedSize)
		w.int(b.Requested)
		w.key(keyState)
		w.key(wordInactive + int64(b.State))
		w.context(b.Stack, b.Note)
	})
}

func (w *writer) event(t *trace.Trace, e *trace.Event) {
	note := &w.Notes[e.Note]
	w.dict(func() {
		w.key(keyAction)
		w.key(wordActions + int64(e.Action-trace.Alloc))
		oom := e.Action == trace.OutOfMemory
		if oom || note.DeviceFree != 0 {
			w.key(keyDeviceFree)
			w.int(note.DeviceFree)
		}
		if !oom || e.Addr != 0 {
			w.key(keyAddr)
			w.uint(e.Addr)
		}
		w.key(keySize)
		w.int(e.Size)
		w.key(keyStream)
		w.int(int64(t.Streams[e.Stream]))
		w.key(keyTimeUS)
		w.int(e.Time)
		w.key(keyCompileContext)
		w.string(cmp.Or(note.CompileContext, vocabulary[wordNotCompiled]))
		w.key(keyUserMetadata)
		w.string(note.UserMetadata)
		if note.HasPool {
			w.key(keyPoolID)
			w.pool(note.Pool)
		}
		w.context(e.Stack, e.Note)
	})
}

// context writes the stack that requested memory.
func (w *writer) context(stack trace.StackID, note trace.NoteID) {
	if !w.Notes[note].NoFrames {
		w.key(keyFrames)
		w.stack(stack)
	}
	if lines := w.Notes[note].ForwardFrames; len(lines) > 0 {
		w.key(keyForwardFrames)
		writeShared(&w.pickler, w.forward, note, func() {
			w.op(opEmptyList)
		}, func() {
			w.items(len(lines), func(i int) { w.string(lines[i]) })
		})
	}
}

func (w *writer) stack(id trace.StackID) {
	frames := w.Stacks.IDs(id)
	writeShared(&w.pickler, w.stacks, id, func() {
		w.op(opEmptyList)
	}, func() {
		w.items(len(frames), func(i int) { w.frame(frames[i]) })
	})
}

func (w *writer) frame(id trace.FrameID) {
	f := w.Stacks.Frame(id)
	writeShared(&w.pickler, w.frames, id, func() {
		w.op(opEmptyDict)
	}, func() {
		w.op(opMark)
		w.key(keyName)
		w.string(f.Name)
		w.key(keyFilename)
		w.string(f.File)
		w.key(keyLine)
		w.uint(uint64(f.Line))
		if f.FX != nil {
			w.optional(keyFXNodeOp, f.FX.Op)
			w.optional(keyFXNodeName, f.FX.Name)
			w.optional(keyFXNodeTarget, f.FX.Target)
			w.optional(keyFXOriginalTrace, f.FX.Trace)
		}
		w.op(opSetItems)
	})
}

func (w *writer) optional(key int64, text string) {
	if text != "" {
		w.key(key)
		w.string(text)
	}
}

// writeShared writes a container once, memoized before it is filled as Python
// does, and refers to it from then on.
func writeShared[K comparable](p *pickler, slots map[K]uint32, key K, empty, fill func()) {
	if slot, ok := slots[key]; ok {
		p.get(slot)
		return
	}
	empty()
	slots[key] = p.memoize()
	fill()
}

func (w *writer) pool(id trace.PoolID) {
	w.uint(id[0])
	w.uint(id[1])
	w.op(opTuple2)
}

// annotations writes the marks of all devices by time.
func (w *writer) annotations(devices []*trace.Trace) {
	var all []annotation
	for _, t := range devices {
		for _, m := range t.Marks {
			all = append(all, annotation{m, t.Device})
		}
	}
	slices.SortStableFunc(all, func(a, b annotation) int { return cmp.Compare(a.Time, b.Time) })
	w.list(len(all), func(i int) {
		stage := wordStart
		if all[i].End {
			stage = wordEnd
		}
		w.dict(func() {
			w.key(keyStage)
			w.key(stage)
			w.key(keyName)
			w.string(all[i].Name)
			w.key(keyDevice)
			w.int(int64(all[i].device))
			w.key(keyTimeUS)
			w.int(all[i].Time)
		})
	})
}

// otherSettings are the settings that PyTorch 2.11 writes and the simulation
// does not use, in order, and whether they are bools.
var otherSettings = []struct {
	name   string
	isBool bool
}{
	{"pinned_num_register_threads", false},
	{"release_lock_on_cudamalloc", true},
	{"pinned_use_cuda_host_register", true},
	{"graph_capture_record_stream_reuse", true},
}

func (w *writer) settings(s *trace.Settings) {
	w.dict(func() {
		w.key(keyAllocConf)
		w.string(s.Raw)
		w.key(keyMaxSplitSize)
		w.int(cmp.Or(s.MaxSplitSize, -1))
		w.key(keyGCThreshold)
		w.float(s.GCThreshold)
		w.key(keyExpandableSegments)
		w.bool(s.ExpandableSegments)
		rest := maps.Clone(s.Other)
		for _, o := range otherSettings {
			n, ok := rest[o.name]
			if !ok {
				continue
			}
			delete(rest, o.name)
			w.string(o.name)
			if o.isBool && n>>1 == 0 {
				w.bool(n == 1)
			} else {
				w.int(n)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(rest)) {
			w.string(name)
			w.int(rest[name])
		}
		w.key(keyRoundupDivisions)
		w.dict(func() {
			for i, n := range s.RoundupDivisions {
				w.string(strconv.Itoa(1 << i))
				w.int(n)
			}
		})
	})
}
