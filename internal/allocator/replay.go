package allocator

import (
	"cmp"
	"fmt"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
)

// Replay is a trace made ready to be run through the allocator, as it was
// recorded or under other settings.
type Replay struct {
	trace    *trace.Trace
	limit    int64 // while it was recorded, 0 if not known
	initial  []trace.Segment
	private  []privateSegment // by address, for events that do not say their pool
	emptied  []int            // events before which the program emptied the cache
	recorded *Outcome
}

// Levels are byte counts after each event of a trace; nil where they are not needed.
type Levels struct{ Allocated, Reserved []int64 }

// Outcome is what running a trace came to.
type Outcome struct {
	Stats  Stats // for Play without the parts that repeat the one before
	Events int   // how far it came: less than the trace has if it did not fit
	Failed *OutOfMemoryError

	// Of Play and Place: the parts of the trace, and the first event at which the
	// most was allocated, from the second part on (the first one usually only builds
	// the model), with what was requested and allocated then.
	Parts                        []Usage
	PeakEvent                    int
	PeakRequested, PeakAllocated bytesize.Bytes

	// Of a Replay.
	Final        []trace.Segment // what the allocator held at the end
	Fullest      int             // the first event after which the most was held, -1 if there is none
	SegmentBytes int64           // all segment bytes taken from the driver on the way
	Stopped      error           // errTooMuchWork if it was given up
	Difference   *Difference     // from the recording; nil if there is none, or it was not compared
	Capacity     Capacity        // what the driver's recorded answers say; zero for a what-if
}

// PeakReserved is the peak over all parts.
func (o *Outcome) PeakReserved() (peak bytesize.Bytes) {
	for _, u := range o.Parts {
		peak = max(peak, u.PeakReserved)
	}
	return peak
}

// Capacity is what a recording shows of how much the allocator could hold: a
// snapshot does not say the limit or the card.
type Capacity struct {
	AtLeast int64 // it held this much
	Below   int64 // it could not hold this much; 0 if it was never refused
}

// Fits reports whether every request was met.
func (o *Outcome) Fits() bool { return o.Failed == nil && o.Stopped == nil }

// NewReplay runs a trace as it was recorded, fills in the levels, and compares every address and
// every segment with the recording; Recorded then has the outcome. It fails
// only if the trace makes no sense.
//
// A recording does not say what limit was set. Everything follows without it
// but garbage collection (R14), for which the caller may know; 0 is unknown.
func NewReplay(t *trace.Trace, limit int64, levels Levels) (*Replay, error) {
	if err := t.CheckValid(); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	r := &Replay{trace: t, limit: limit}
	var err error
	if r.initial, r.private, err = initialState(t); err != nil {
		return nil, fmt.Errorf("replay: reconstruct the beginning: %w", err)
	}
	d, p := r.runRecorded(len(t.Events), levels)
	if p.out.Stopped != nil {
		return nil, fmt.Errorf("replay: %w", p.out.Stopped)
	}
	if d.first == nil {
		d.first = compareFinal(t, p.out.Final)
	}
	r.recorded = p.out
	r.recorded.Difference = d.first
	r.recorded.SegmentBytes = d.asked
	r.recorded.Capacity = Capacity{AtLeast: p.out.Stats.ReservedBytes[All].Peak, Below: d.below}
	r.emptied = p.emptied
	return r, nil
}

// HeldAfter returns what the allocator held after an event of the recorded run.
func (r *Replay) HeldAfter(event int) []trace.Segment {
	_, p := r.runRecorded(event+1, Levels{})
	return p.out.Final
}

// Recorded returns the outcome under the recorded settings.
func (r *Replay) Recorded() *Outcome { return r.recorded }

// HasPrivatePools reports whether some request was for another pool than the default one.
func (r *Replay) HasPrivatePools() bool {
	for i := range r.trace.Events {
		if r.trace.Events[i].Action == trace.Alloc && r.poolAt(i) != (trace.PoolID{}) {
			return true
		}
	}
	return false
}

// run is one pass over a trace.
type run struct {
	*Replay
	a       *cachingAllocator
	handles []blockIndex // by allocation
	emptied []int        // where the recording shows that the program emptied the cache
	out     *Outcome
	fullest int64 // what was held after out.Fullest
	levels  Levels
	// The ends of the runs of completed frees and of segment events that were
	// looked through last.
	completions, segments int
}

func (r *Replay) newRun(a *cachingAllocator) *run {
	p := &run{
		Replay: r, a: a, handles: make([]blockIndex, r.trace.Allocations()),
		out: &Outcome{Events: len(r.trace.Events), Fullest: -1}, fullest: -1,
	}
	for i := range p.handles {
		p.handles[i] = noBlock
	}
	return p
}

func (r *run) seed(segments []trace.Segment) {
	for id, h := range r.a.seed(segments) {
		r.handles[id] = h
	}
}

// step runs one event of the program's; segment events are the allocator's own
// doing and are not fed to it.
func (r *run) step(i int) error {
	e := &r.trace.Events[i]
	switch e.Action {
	case trace.Alloc, trace.OutOfMemory:
		return r.request(i)
	case trace.FreeRequested:
		if b := r.blockOf(e.ID); b != nil && b.allocated {
			r.a.freeRequested(r.handles[e.ID])
		}
	case trace.FreeCompleted:
		switch b := r.blockOf(e.ID); {
		case b == nil:
		case b.allocated:
			r.a.free(r.handles[e.ID]) // the request to free it was not recorded
		default:
			r.a.freeCompleted(r.handles[e.ID])
		}
	default:
	}
	return nil
}

// blockOf returns the block that holds an allocation. There is none where the
// simulation has parted from the recording: the allocation failed, or a wait
// for all streams made its memory another's.
func (r *run) blockOf(id trace.ID) *block {
	h := r.handles[id]
	if h == noBlock || r.a.blocks.at(h).id != id {
		return nil
	}
	return r.a.blocks.at(h)
}

func (r *run) request(i int) error {
	e := &r.trace.Events[i]
	h, err := r.a.malloc(request{Size: e.Size, Stream: e.Stream, Pool: r.poolAt(i), ID: e.ID, Stack: e.Stack})
	if err != nil {
		return err
	}
	if e.ID != trace.None {
		r.handles[e.ID] = h
	}
	return nil
}

// poolAt returns the private pool that the request of an event belongs to.
func (r *Replay) poolAt(i int) trace.PoolID {
	e := &r.trace.Events[i]
	if e.Note != 0 && r.trace.Notes[e.Note].HasPool {
		return r.trace.Notes[e.Note].Pool
	}
	if len(r.private) == 0 {
		return trace.PoolID{}
	}
	at, found := slices.BinarySearchFunc(r.private, e.Addr, func(p privateSegment, addr uint64) int { return cmp.Compare(p.Addr, addr) })
	if !found {
		at--
	}
	if at < 0 {
		return trace.PoolID{}
	}
	if p := &r.private[at]; e.Addr < p.Addr+uint64(p.Size) && i >= p.from {
		return p.Pool
	}
	return trace.PoolID{}
}

// note takes down what is held after the events from one to before another.
func (r *run) note(from, to int) {
	s := &r.a.stats
	if held := s.ReservedBytes[All].Current; held > r.fullest && from < to {
		r.fullest, r.out.Fullest = held, from
	}
	for i := from; i < to && r.levels.Allocated != nil; i++ {
		r.levels.Allocated[i] = s.AllocatedBytes[All].Current
	}
	for i := from; i < to && r.levels.Reserved != nil; i++ {
		r.levels.Reserved[i] = s.ReservedBytes[All].Current
	}
}

func (r *run) finish() *Outcome {
	r.out.Stats = r.a.stats
	r.out.Final = r.a.snapshot()
	return r.out
}
