package allocator

import (
	"fmt"

	"memorymark/internal/trace"
)

// runRecorded replays the trace, up to an event, with the driver's recorded
// answers, and fills in the levels.
func (r *Replay) runRecorded(until int, levels Levels) (*recordedDriver, *run) {
	d := &recordedDriver{events: r.trace.Events, model: newModelDriver(lowestAddress(r.trace))}
	p := r.newRun(newAllocator(d, Options{Settings: r.trace.Settings, Limit: r.limit, Streams: r.trace.Streams}))
	p.a.refuses = d.refuses
	p.levels = levels
	p.seed(r.initial)
	budget := newWalkBudget(len(r.trace.Events))
	for i := 0; i < until; {
		if budget.spent(p.a) {
			p.out.Stopped = errTooMuchWork
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
		r.a.releaseCachedBlocks()
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
	pool := r.a.getPool(r.poolAt(d.end), size)
	if _, ok := r.a.bestFit(&pool.of(request.Stream).blocks, size); ok {
		return true
	}
	first := r.a.firstRelease(pool, request.Stream, size)
	return first != noBlock && r.a.addr(first) != d.events[d.at].Addr
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
		if addr := r.a.addr(r.handles[e.ID]); addr != e.Addr {
			d.differ(d.end, describe(e.Action, e.Addr, e.Size), fmt.Sprintf("address %#x", addr))
		}
	}
}

// compareFinal compares what the allocator holds with the recorded segments.
func compareFinal(t *trace.Trace, got []trace.Segment) *Difference {
	end := len(t.Events)
	for i := range max(len(t.Final), len(got)) {
		if i >= len(got) || i >= len(t.Final) || keyOf(t.Final[i]) != keyOf(got[i]) {
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

func keyOf(s trace.Segment) segmentKey {
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
