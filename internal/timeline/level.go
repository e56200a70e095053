package timeline

import (
	"fmt"
	"math"

	"memorymark/internal/trace"
)

// Levels are bytes after each event, index = event; nil if unknown. They come
// from the allocator's simulation, or from Reserved.
type Levels struct {
	Allocated []int64 // allocated bytes, rounding included
	Reserved  []int64 // taken from the driver
}

func (l Levels) check(t *trace.Trace) error {
	for _, level := range [][]int64{l.Allocated, l.Reserved} {
		if level != nil && len(level) != len(t.Events) {
			return fmt.Errorf("levels of %d events for a trace of %d", len(level), len(t.Events))
		}
	}
	return nil
}

// activeOf returns the bytes that the program had asked for and that were not
// yet free again, before the first event and after each. As in PyTorch's
// viewer, memory that was freed but waits for another stream counts.
func activeOf(t *trace.Trace, lifetimes []trace.Lifetime) ([]int64, error) {
	active := make([]int64, len(t.Events)+1) // changes first
	for i := range lifetimes {
		l := &lifetimes[i]
		if l.Size < 0 {
			return nil, fmt.Errorf("allocation %d: size %d", l.ID, l.Size)
		}
		if l.Gone < len(t.Events) {
			active[l.Gone+1] -= l.Size
		}
		if active[l.Alloc+1] > math.MaxInt64-l.Size {
			return nil, fmt.Errorf("allocation %d: more memory than can be represented", l.ID)
		}
		active[l.Alloc+1] += l.Size
	}
	for i := 1; i < len(active); i++ {
		if active[i] > 0 && active[i-1] > math.MaxInt64-active[i] {
			return nil, fmt.Errorf("event %d: more memory than can be represented", i-1)
		}
		active[i] += active[i-1]
	}
	return active, nil
}

// Reserved returns the reserved bytes after each event, nil if unknown.
func Reserved(t *trace.Trace) []int64 {
	if t.Final == nil {
		return nil
	}
	reserved := make([]int64, len(t.Events))
	if !walkReserved(t, func(event int, held int64) { reserved[event] = held }) {
		return nil
	}
	return reserved
}

// PeakReserved returns the peak of reserved bytes; ok is false if it is
// unknown.
func PeakReserved(t *trace.Trace) (peak int64, ok bool) {
	known := walkReserved(t, func(_ int, held int64) { peak = max(peak, held) })
	return peak, known && len(t.Events) > 0
}

// walkReserved visits the events, the last first, with the reserved bytes after
// each. It goes back from the final segments, so it is exact without a
// simulation. It reports false if these are unknown or contradict the events.
func walkReserved(t *trace.Trace, visit func(event int, held int64)) bool {
	if t.Final == nil {
		return false
	}
	var held int64
	for i := range t.Final {
		if t.Final[i].Size < 0 || held > math.MaxInt64-t.Final[i].Size {
			return false
		}
		held += t.Final[i].Size
	}
	for i := len(t.Events) - 1; i >= 0; i-- {
		visit(i, held)
		e := &t.Events[i]
		if !e.Action.IsSegment() {
			continue
		}
		// Going back, segments that were taken are returned. Either way the sum
		// falls below zero when the recording is not whole or too large to
		// count.
		if e.Action == trace.SegmentAlloc || e.Action == trace.SegmentMap {
			held -= e.Size
		} else {
			held += e.Size
		}
		if held < 0 || e.Size < 0 {
			return false
		}
	}
	return true
}
