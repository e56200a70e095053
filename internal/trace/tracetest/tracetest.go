// Package tracetest has traces for tests: recordings of real programs, and ones
// that no program makes but a file can contain.
package tracetest

import "memorymark/internal/trace"

// Shape is a kind of hostile recording.
type Shape struct {
	Name string
	// Make returns one with about n entries of the kind.
	Make func(n int) *trace.Trace
}

// Hostile are the kinds. Each once made something need time or memory that grew
// with the square of its length.
var Hostile = []Shape{
	{"completions in a row", completionsInARow},
	{"completions before unmaps", completionsBeforeUnmaps},
	{"unmaps in a row", unmapsInARow},
	{"maps in a row", mapsInARow},
	{"out-of-memory errors with much that is free", failuresWithFreeBlocks},
	{"out-of-memory errors on many streams", failuresOnManyStreams},
	{"a pool for each of many streams", poolsAndStreams},
	{"an out-of-memory error after many segments", failureAfterSegments},
	{"gaps that are too small", SmallGaps},
}

// Segments of the allocator.
const (
	smallSegment = 2 << 20
	largeSegment = 20 << 20
)

// hostile builds a trace event by event.
type hostile struct{ *trace.Trace }

func newHostile() hostile { return hostile{trace.New(0, trace.NewTables())} }

func (h hostile) add(a trace.Action, addr uint64, size int64, stream uint16) {
	h.Events = append(h.Events, trace.Event{Action: a, Addr: addr, Size: size, Stream: stream})
}

// small is the address of the i-th block of 512 bytes.
func small(i int) uint64 { return 1<<40 + uint64(i)*512 }

// smallBlocks takes segments of the small pool and fills them with n blocks.
func (h hostile) smallBlocks(n int) {
	for i := range n {
		if i%4096 == 0 {
			h.add(trace.SegmentAlloc, small(i), smallSegment, 0)
		}
		h.add(trace.Alloc, small(i), 512, 0)
	}
}

// closeSmall gives the trace the segments that smallBlocks left, with the
// blocks that are still in use.
func (h hostile) closeSmall(n int, inUse func(i int) bool) *trace.Trace {
	for i := 0; i < n; i += 4096 {
		s := trace.Segment{Addr: small(i), Size: smallSegment, Small: true}
		for j := range 4096 {
			b := trace.Block{Addr: small(i + j), Size: 512, Requested: 512}
			if i+j < n && inUse(i+j) {
				b.State = trace.Allocated
			} else if last := len(s.Blocks) - 1; last >= 0 && s.Blocks[last].State == trace.Inactive {
				s.Blocks[last].Size += 512
				continue
			}
			s.Blocks = append(s.Blocks, b)
		}
		h.Final = append(h.Final, s)
	}
	h.Link()
	return h.Trace
}

func completionsInARow(n int) *trace.Trace {
	h := newHostile()
	h.smallBlocks(n)
	for i := range n {
		h.add(trace.FreeRequested, small(i), 512, 0)
	}
	for i := range n {
		h.add(trace.FreeCompleted, small(i), 512, 0)
	}
	return h.closeSmall(n, func(int) bool { return false })
}

func completionsBeforeUnmaps(n int) *trace.Trace {
	h := newHostile()
	h.smallBlocks(n / 2)
	for i := range n / 2 {
		h.add(trace.FreeRequested, small(i), 512, 0)
	}
	for i := range n / 2 {
		h.add(trace.FreeCompleted, small(i), 512, 0)
	}
	for i := range n / 2 {
		h.add(trace.SegmentUnmap, 1<<41+uint64(2*i)*smallSegment, smallSegment, 0)
	}
	return h.closeSmall(n/2, func(int) bool { return false })
}

func unmapsInARow(n int) *trace.Trace {
	h := newHostile()
	for i := range n {
		h.add(trace.SegmentUnmap, 1<<41+uint64(2*(n-i))*smallSegment, smallSegment, 0)
	}
	h.Final = []trace.Segment{}
	h.Link()
	return h.Trace
}

// mapsInARow maps pages that no neighbour joins, each for a block that fills
// it.
func mapsInARow(n int) *trace.Trace {
	h := newHostile()
	h.Settings.ExpandableSegments = true
	for i := range n {
		addr := 1<<41 + uint64(2*i)*largeSegment
		h.add(trace.SegmentMap, addr, largeSegment, 0)
		h.add(trace.Alloc, addr, largeSegment, 0)
		h.Final = append(h.Final, trace.Segment{Addr: addr, Size: largeSegment, Expandable: true, Blocks: []trace.Block{
			{Addr: addr, Size: largeSegment, Requested: largeSegment, State: trace.Allocated},
		}})
	}
	h.Link()
	return h.Trace
}

// failuresWithFreeBlocks frees every second block and then fails again and
// again: no segment is entirely free.
func failuresWithFreeBlocks(n int) *trace.Trace {
	h := newHostile()
	h.smallBlocks(n)
	for i := 0; i < n; i += 2 {
		h.add(trace.FreeRequested, small(i), 512, 0)
		h.add(trace.FreeCompleted, small(i), 512, 0)
	}
	for range n {
		h.add(trace.OutOfMemory, 0, 1<<40, 0)
	}
	return h.closeSmall(n, func(i int) bool { return i%2 == 1 })
}

func failuresOnManyStreams(n int) *trace.Trace {
	h := newHostile()
	for i := 1; i < 50_000; i++ {
		h.Streams = append(h.Streams, uint64(i))
	}
	h.smallBlocks(1)
	for i := range n {
		h.add(trace.OutOfMemory, 0, 1<<40, uint16(i%50_000))
	}
	return h.closeSmall(1, func(int) bool { return true })
}

func poolsAndStreams(n int) *trace.Trace {
	h := newHostile()
	const streams = 10_000
	for i := 1; i < streams; i++ {
		h.Streams = append(h.Streams, uint64(i))
	}
	for i := range n / 2 {
		note := h.AddNote(trace.Note{Pool: trace.PoolID{1, uint64(i + 1)}, HasPool: true})
		addr := 1<<41 + uint64(i)*smallSegment
		for _, a := range []trace.Action{trace.SegmentAlloc, trace.Alloc} {
			h.add(a, addr, smallSegment, uint16(i%streams))
			h.Events[len(h.Events)-1].Note = note
		}
		h.Events[len(h.Events)-1].Size = 512
		h.Final = append(h.Final, trace.Segment{
			Addr: addr, Size: smallSegment, Stream: uint16(i % streams), Pool: h.Notes[note].Pool, Small: true,
			Blocks: []trace.Block{
				{Addr: addr, Size: 512, Requested: 512, State: trace.Allocated},
				{Addr: addr + 512, Size: smallSegment - 512},
			},
		})
	}
	h.Link()
	return h.Trace
}

// failureAfterSegments ends in an error whose remedies are searched for: each
// trial runs the whole recording, and places all segments.
func failureAfterSegments(n int) *trace.Trace {
	h := newHostile()
	const size = 12 << 20
	for i := range n / 2 {
		addr := 1<<41 + uint64(i)*size
		h.add(trace.SegmentAlloc, addr, size, 0)
		h.add(trace.Alloc, addr, size, 0)
		h.Final = append(h.Final, trace.Segment{Addr: addr, Size: size, Blocks: []trace.Block{
			{Addr: addr, Size: size, Requested: size, State: trace.Allocated},
		}})
	}
	h.add(trace.OutOfMemory, 0, size, 0)
	h.Link()
	return h.Trace
}

// SmallGaps returns every second segment to the driver and then takes larger
// ones. If the segments were expandable, each would be searched for in all
// gaps.
func SmallGaps(n int) *trace.Trace {
	h := newHostile()
	at := func(i int) uint64 { return 1<<41 + uint64(i)*largeSegment }
	n /= 4
	for i := range n {
		h.add(trace.SegmentAlloc, at(i), largeSegment, 0)
		h.add(trace.Alloc, at(i), largeSegment, 0)
	}
	for i := 0; i < n; i += 2 {
		h.add(trace.FreeRequested, at(i), largeSegment, 0)
		h.add(trace.FreeCompleted, at(i), largeSegment, 0)
	}
	for i := 0; i < n; i += 2 {
		h.add(trace.SegmentFree, at(i), largeSegment, 0)
	}
	h.add(trace.SnapshotTaken, 0, 0, 0) // so it was the program that emptied the cache
	segment := func(addr uint64, size int64) trace.Segment {
		return trace.Segment{Addr: addr, Size: size, Blocks: []trace.Block{{Addr: addr, Size: size, Requested: size, State: trace.Allocated}}}
	}
	for i := 1; i < n; i += 2 {
		h.Final = append(h.Final, segment(at(i), largeSegment))
	}
	for i := range n {
		h.add(trace.SegmentAlloc, at(n+2*i), 2*largeSegment, 0)
		h.add(trace.Alloc, at(n+2*i), 2*largeSegment, 0)
		h.Final = append(h.Final, segment(at(n+2*i), 2*largeSegment))
	}
	h.Link()
	return h.Trace
}
