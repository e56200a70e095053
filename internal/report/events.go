package report

import "memorymark/internal/trace"

// Event is an event of a recording in JSON.
type Event struct {
	Event      int    `json:"event"` // its number
	Action     string `json:"action"`
	Micros     *int64 `json:"elapsed_us,omitempty"` // since the first event, absent if not recorded
	Address    uint64 `json:"address,omitempty"`
	Bytes      int64  `json:"bytes"`
	Stream     int    `json:"stream"`
	Allocation *int   `json:"allocation,omitempty"` // which one it belongs to
	Born       *int   `json:"born,omitempty"`       // event of that allocation, -1 for before the recording
	Freed      *int   `json:"freed,omitempty"`      // event of that allocation, absent if it never is
	Place
}

// NewEvents describes events of a recording.
func NewEvents(t *trace.Trace, lifetimes []trace.Lifetime, events []int) []Event {
	var start int64
	for i := range t.Events {
		if start = t.Events[i].Time; start > 0 {
			break
		}
	}
	out := make([]Event, len(events))
	for i, n := range events {
		e := &t.Events[n]
		row := Event{Event: n, Action: e.Action.String(), Address: e.Addr, Bytes: e.Size, Stream: int(e.Stream)}
		if e.Time > 0 {
			micros := e.Time - start
			row.Micros = &micros
		}
		what := e.For
		if e.ID != trace.None && int(e.ID) < len(lifetimes) {
			l := &lifetimes[e.ID]
			id := int(e.ID)
			what, row.Allocation, row.Born = l.For, &id, &l.Alloc
			if l.Freed < len(t.Events) {
				row.Freed = &l.Freed
			}
		}
		row.Place = newPlace(t.Stacks.Frames(e.Stack), what, false)
		out[i] = row
	}
	return out
}

// Segment is what the allocator holds in one piece.
type Segment struct {
	Address    uint64 `json:"address"`
	Bytes      int64  `json:"bytes"`
	Stream     int    `json:"stream"`
	Small      bool   `json:"small,omitempty"`      // of the pool of small allocations
	Expandable bool   `json:"expandable,omitempty"` //
	Private    bool   `json:"private,omitempty"`    // of a pool of its own, as CUDA graphs have
	// Blocks tile the segment: offset, bytes, state, requested bytes, allocation
	// and category of each, one after the other. States are 0 free, 1 in use, 2
	// given back but waiting for another stream; a free block has allocation -1.
	// Categories are numbered as the colours of a timeline, 0 if not known.
	Blocks []int64 `json:"blocks"`
}

// NewSegments describes what an allocator held. The lifetimes are those of the
// recording, classified.
func NewSegments(segments []trace.Segment, lifetimes []trace.Lifetime) []Segment {
	out := make([]Segment, len(segments))
	for i := range segments {
		s := &segments[i]
		out[i] = Segment{
			Address: s.Addr, Bytes: s.Size, Stream: int(s.Stream), Small: s.Small, Expandable: s.Expandable,
			Private: s.Pool != trace.PoolID{}, Blocks: make([]int64, 0, 6*len(s.Blocks)),
		}
		for _, b := range s.Blocks {
			requested, id, what := b.Requested, int64(b.ID), trace.Unknown
			if b.State == trace.Inactive {
				requested, id = 0, -1
			} else if 0 <= id && id < int64(len(lifetimes)) {
				what = lifetimes[id].For
			}
			out[i].Blocks = append(out[i].Blocks, int64(b.Addr-s.Addr), b.Size, int64(b.State), requested, id, int64(what))
		}
	}
	return out
}
