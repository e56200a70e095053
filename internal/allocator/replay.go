package allocator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/effort"
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

// Levels are byte counts after each event of a trace; nil where nobody asks.
type Levels struct{ Allocated, Reserved []int64 }

// Outcome is what a replay came to.
type Outcome struct {
	Stats        Stats
	Final        []trace.Segment // what the allocator held at the end
	Fullest      int             // the first event after which the most was held, -1 if there is none
	SegmentBytes int64           // all segment bytes taken from the driver on the way
	Events       int             // how far it came: less than the trace has if it did not fit
	Failed       *OutOfMemoryError
	Stopped      error       // ErrTooMuchWork if it was given up
	Difference   *Difference // from the recording; nil if there is none, or it was not compared
	Capacity     Capacity    // what the driver's recorded answers say; zero for a what-if
}

// Capacity is what a recording shows of how much the allocator could hold: a
// snapshot does not say the limit or the card.
type Capacity struct {
	AtLeast int64 // it held this much
	Below   int64 // it could not hold this much; 0 if it was never refused
}

// Fits reports whether every request was met.
func (o *Outcome) Fits() bool { return o.Failed == nil && o.Stopped == nil }

// NewReplay runs a trace as it was recorded and compares every address and
// every segment with the recording; Recorded then has the outcome. It fails
// only if the trace makes no sense.
//
// A recording does not say what limit was set. Everything follows without it
// but garbage collection (R14), for which the caller may know; 0 is unknown.
func NewReplay(t *trace.Trace, limit int64) (*Replay, error) {
	return NewReplayWithLevels(t, limit, Levels{})
}

// NewReplayWithLevels is NewReplay, and fills in what was held after each event
// on the way.
func NewReplayWithLevels(t *trace.Trace, limit int64, levels Levels) (*Replay, error) {
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

// run is one pass over a trace.
type run struct {
	*Replay
	a       *Allocator
	handles []Handle // by allocation
	emptied []int    // where the recording shows that the program emptied the cache
	out     *Outcome
	fullest int64 // what was held after out.Fullest
	levels  Levels
	// The ends of the runs of completed frees and of segment events that were
	// looked through last.
	completions, segments int
}

func (r *Replay) newRun(a *Allocator) *run {
	p := &run{
		Replay: r, a: a, handles: make([]Handle, r.trace.Allocations()),
		out: &Outcome{Events: len(r.trace.Events), Fullest: -1}, fullest: -1,
	}
	for i := range p.handles {
		p.handles[i] = none
	}
	return p
}

func (r *run) seed(segments []trace.Segment) {
	for id, h := range r.a.Seed(segments) {
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
			r.a.FreeRequested(r.handles[e.ID])
		}
	case trace.FreeCompleted:
		switch b := r.blockOf(e.ID); {
		case b == nil:
		case b.allocated:
			r.a.Free(r.handles[e.ID]) // the request to free it was not recorded
		default:
			r.a.FreeCompleted(r.handles[e.ID])
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
	if h == none || r.a.blocks.at(h).id != id {
		return nil
	}
	return r.a.blocks.at(h)
}

func (r *run) request(i int) error {
	e := &r.trace.Events[i]
	h, err := r.a.Malloc(Request{Size: e.Size, Stream: e.Stream, Pool: r.poolAt(i), ID: e.ID, Stack: e.Stack})
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
	s := r.a.Stats()
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
	r.out.Stats = *r.a.Stats()
	r.out.Final = r.a.Segments()
	return r.out
}

// runRecorded replays the trace, up to an event, with the driver's recorded
// answers, and fills in the levels.
func (r *Replay) runRecorded(until int, levels Levels) (*recordedDriver, *run) {
	d := &recordedDriver{events: r.trace.Events, model: NewModelDriver(lowestAddress(r.trace))}
	p := r.newRun(New(d, Options{Settings: r.trace.Settings, Limit: r.limit, Streams: r.trace.Streams}))
	p.a.refuses = d.refuses
	p.levels = levels
	p.seed(r.initial)
	budget := newBudget(len(r.trace.Events))
	for i := 0; i < until; {
		if budget.spent(p.a) {
			p.out.Stopped = ErrTooMuchWork
			break
		}
		i = p.recordedStep(d, i)
	}
	p.finish()
	return d, p
}

// recordedStep runs the request that the events from i on belong to, with what
// the allocator did for its sake before it, and returns the index behind them.
func (r *run) recordedStep(d *recordedDriver, i int) int {
	d.at = r.behindCompletions(d, i)
	d.end = r.behindSegments(d, d.at)
	if d.at > i && !r.waitsForStreams(d) {
		d.at, d.end = i, i // ordinary completions: one at a time
	}
	from := d.at
	if d.at < d.end && r.emptiesCache(d) {
		r.emptied = append(r.emptied, i)
		r.a.EmptyCache()
		if d.at == from {
			d.differ(from, describe(d.events[from].Action, d.events[from].Addr, d.events[from].Size), "nothing to release")
			d.at = d.end
		}
		r.note(i, d.at)
		return d.at
	}
	if d.end == len(d.events) {
		d.differ(from, describe(d.events[from].Action, d.events[from].Addr, d.events[from].Size), "nothing: no request follows")
		return d.end
	}
	r.compareStep(d)
	r.note(i, d.end+1)
	return d.end + 1
}

// behindCompletions returns the index behind the frees from i on that complete
// memory given back some time before, not just now.
func (r *run) behindCompletions(d *recordedDriver, i int) int {
	if i < r.completions {
		return r.completions // in the middle of a run that was looked through
	}
	if d.events[i].Action != trace.FreeCompleted {
		return i
	}
	if i > 0 && d.events[i-1].Action == trace.FreeRequested && d.events[i-1].ID == d.events[i].ID {
		return i
	}
	end := i
	for end < len(d.events) && d.events[end].Action == trace.FreeCompleted {
		end++
	}
	r.completions = end
	return end
}

// behindSegments returns the index behind the segment events from i on.
func (r *run) behindSegments(d *recordedDriver, i int) int {
	if i < r.segments {
		return r.segments
	}
	end := i
	for end < len(d.events) && d.events[end].Action.IsSegment() {
		end++
	}
	r.segments = end
	return end
}

// waitsForStreams reports whether the completions before d.at come from the
// wait for all streams in a last attempt (R13), which is after the search for
// a free block, and not from a look at which streams have passed, which is
// before it. The search would have found what they made free.
func (r *run) waitsForStreams(d *recordedDriver) bool {
	if d.end == len(d.events) {
		return false
	}
	request := &d.events[d.end]
	released := d.at < d.end && isRelease(d.events[d.at].Action)
	return (request.Action == trace.OutOfMemory || request.Action == trace.Alloc && released) &&
		!r.emptiesCache(d)
}

// emptiesCache reports whether segments were released because the program
// asked for it (torch.cuda.empty_cache leaves no event of its own) and not
// for the sake of the request that follows.
func (r *run) emptiesCache(d *recordedDriver) bool {
	if d.at == d.end || !isRelease(d.events[d.at].Action) {
		return false
	}
	if d.end == len(d.events) {
		return true
	}
	request := &d.events[d.end]
	if request.Action == trace.OutOfMemory {
		return false
	}
	if request.Action != trace.Alloc || isRelease(d.events[d.end-1].Action) {
		return true
	}
	size := roundSize(request.Size, &r.trace.Settings)
	pool := r.a.poolFor(r.poolAt(d.end), size)
	if _, ok := r.a.bestFit(&pool.of(request.Stream).free, size); ok {
		return true
	}
	first := r.a.firstRelease(pool, request.Stream, size)
	return first != none && r.a.Addr(first) != d.events[d.at].Addr
}

func isRelease(a trace.Action) bool { return a == trace.SegmentFree || a == trace.SegmentUnmap }

// compareStep runs the event at d.end and compares what came of it.
func (r *run) compareStep(d *recordedDriver) {
	e := &d.events[d.end]
	err := r.step(d.end)
	if d.at < d.end && d.first == nil {
		next := d.events[d.at]
		d.differ(d.at, describe(next.Action, next.Addr, next.Size), "no such segment event")
	}
	switch {
	case err == nil && e.Action == trace.OutOfMemory:
		d.differ(d.end, "oom", "an allocation that fits")
	case err != nil && e.Action != trace.OutOfMemory:
		d.differ(d.end, describe(e.Action, e.Addr, e.Size), err.Error())
	case e.Action == trace.Alloc:
		if addr := r.a.Addr(r.handles[e.ID]); addr != e.Addr {
			d.differ(d.end, describe(e.Action, e.Addr, e.Size), fmt.Sprintf("address %#x", addr))
		}
	}
}

// Change is what a what-if run changes. Nil and zero leave things as they were.
type Change struct {
	Settings *trace.Settings
	Limit    int64
	Until    int // stop before this event, 0 for the end
	Effort   *effort.Effort
}

// WhatIf runs the recorded requests under other settings or another limit. It
// stops at the first request that cannot be met; and at a recorded
// out-of-memory error, after trying its request, since the program went
// another way from there.
func (r *Replay) WhatIf(c Change) *Outcome { return r.whatIf(c, newBudget(len(r.trace.Events))) }

func (r *Replay) whatIf(c Change, budget *budget) *Outcome {
	settings := r.trace.Settings
	if c.Settings != nil {
		settings = *c.Settings
	}
	d := &countingDriver{ModelDriver: *NewModelDriver(lowestAddress(r.trace))}
	p := r.newRun(New(d, Options{Settings: settings, Limit: c.Limit, Streams: r.trace.Streams}))
	defer budget.charge(p.a)
	if err := p.begin(c); err != nil {
		return p.fail(0, err, d)
	}
	emptied := r.emptied
	for i := range r.trace.Events {
		if c.Until > 0 && i >= c.Until {
			p.out.Events = i
			break
		}
		if budget.spent(p.a) {
			p.out.Events, p.out.Stopped = i, ErrTooMuchWork
			break
		}
		if i%eventsAtATime == 0 {
			if p.out.Stopped = c.Effort.Spend(eventsAtATime); p.out.Stopped != nil {
				p.out.Events = i
				break
			}
		}
		if len(emptied) > 0 && emptied[0] == i {
			emptied = emptied[1:]
			p.a.EmptyCache()
		}
		if err := p.step(i); err != nil {
			return p.fail(i, err, d)
		}
		p.note(i, i+1)
		if r.trace.Events[i].Action == trace.OutOfMemory {
			p.out.Events = i + 1
			break
		}
	}
	out := p.finish()
	out.SegmentBytes = d.asked
	return out
}

// begin puts the allocator into the state in which the recording began. Where
// placement itself would have been different, what was live is allocated anew,
// in the order of its addresses: a recording does not show the real order.
func (r *run) begin(c Change) error {
	if c.Settings == nil || placesAlike(c.Settings, &r.trace.Settings) {
		r.seed(r.initial)
		if c.Limit > 0 && r.a.stats.ReservedBytes[All].Current > c.Limit {
			r.a.EmptyCache()
		}
		if held := r.a.stats.ReservedBytes[All].Current; c.Limit > 0 && held > c.Limit {
			return &OutOfMemoryError{Allocated: r.a.stats.AllocatedBytes[All].Current, Reserved: held, Limit: c.Limit}
		}
		return nil
	}
	for _, s := range r.initial {
		for _, b := range s.Blocks {
			if b.State == trace.Inactive {
				continue
			}
			h, err := r.a.Malloc(Request{Size: b.Requested, Stream: s.Stream, Pool: s.Pool, ID: b.ID, Stack: b.Stack})
			if err != nil {
				return err
			}
			r.handles[b.ID] = h
			if b.State == trace.PendingFree {
				r.a.FreeRequested(h)
			}
		}
	}
	return nil
}

// placesAlike reports whether two settings hand out the same addresses as long
// as memory lasts.
func placesAlike(a, b *trace.Settings) bool {
	return a.MaxSplitSize == b.MaxSplitSize && a.ExpandableSegments == b.ExpandableSegments &&
		a.RoundupDivisions == b.RoundupDivisions
}

func (r *run) fail(event int, err error, d *countingDriver) *Outcome {
	if !errors.As(err, &r.out.Failed) {
		panic(fmt.Sprintf("allocator: %v is not an out-of-memory error", err))
	}
	r.out.Events = event
	out := r.finish()
	out.SegmentBytes = d.asked
	return out
}

// countingDriver adds up what it is asked for.
type countingDriver struct {
	ModelDriver
	asked int64
}

func (d *countingDriver) Malloc(size int64) (uint64, bool) {
	d.asked += size
	return d.ModelDriver.Malloc(size)
}

func (d *countingDriver) Map(addr uint64, size int64) bool {
	d.asked += size
	return d.ModelDriver.Map(addr, size)
}

// lowestAddress returns an address below everything a trace names.
func lowestAddress(t *trace.Trace) uint64 {
	low := uint64(1) << 46
	for _, s := range t.Final {
		low = min(low, s.Addr)
	}
	for i := range t.Events {
		if e := &t.Events[i]; e.Action.IsSegment() {
			low = min(low, e.Addr)
		}
	}
	return low &^ (regionBytes - 1)
}

// compareFinal compares what the allocator holds with the recorded segments.
func compareFinal(t *trace.Trace, got []trace.Segment) *Difference {
	end := len(t.Events)
	for i := range max(len(t.Final), len(got)) {
		if i >= len(got) || i >= len(t.Final) || bareKey(t.Final[i]) != bareKey(got[i]) {
			return &Difference{end, describeSegment(t.Final, i), describeSegment(got, i)}
		}
		want, have := t.Final[i].Blocks, got[i].Blocks
		for j := range max(len(want), len(have)) {
			if j >= len(want) || j >= len(have) || !sameBlock(want[j], have[j]) {
				return &Difference{end, describeBlock(want, j), describeBlock(have, j)}
			}
		}
	}
	return nil
}

type segmentKey struct {
	addr              uint64
	size              int64
	stream            uint16
	pool              trace.PoolID
	small, expandable bool
}

func bareKey(s trace.Segment) segmentKey {
	return segmentKey{s.Addr, s.Size, s.Stream, s.Pool, s.Small, s.Expandable}
}

// sameBlock compares a recorded with a simulated block. The stale request of a
// free block is compared where the recording shows where it comes from.
func sameBlock(want, have trace.Block) bool {
	return want.Addr == have.Addr && want.Size == have.Size && want.State == have.State && want.ID == have.ID &&
		(have.Requested == unknownRequest || want.Requested == have.Requested)
}

func describeSegment(list []trace.Segment, i int) string {
	if i >= len(list) {
		return "no further segment"
	}
	return fmt.Sprintf("segment of %d bytes at %#x", list[i].Size, list[i].Addr)
}

func describeBlock(list []trace.Block, i int) string {
	if i >= len(list) {
		return "no further block in the segment"
	}
	b := list[i]
	return fmt.Sprintf("%s block of %d bytes (asked for %d) at %#x", b.State, b.Size, b.Requested, b.Addr)
}
