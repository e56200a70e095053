package allocator

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/bytesize"
	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
)

// This file runs traces that have no addresses yet, such as predictions, on a
// fresh allocator. Play only counts; Place also writes down where everything
// went and what was taken from the driver, as a recording would.

// Usage is what the statistics say of a part of a run, as if peaks had been reset at
// its beginning (torch.cuda.reset_peak_memory_stats).
type Usage struct {
	PeakRequested bytesize.Bytes `json:"peak_requested"` // by tensors
	PeakAllocated bytesize.Bytes `json:"peak_allocated"` // whole blocks
	PeakReserved  bytesize.Bytes `json:"peak_reserved"`  // held from the driver
	EndAllocated  bytesize.Bytes `json:"end_allocated"`
}

// Max is the maximum of each kind.
func (u Usage) Max(other Usage) Usage {
	return Usage{
		max(u.PeakRequested, other.PeakRequested), max(u.PeakAllocated, other.PeakAllocated),
		max(u.PeakReserved, other.PeakReserved), max(u.EndAllocated, other.EndAllocated),
	}
}

// predictionTop is where predicted segments lie below: an address as CUDA
// hands them out, with space for every card below it.
const predictionTop = 1 << 46

func predictionDriver(opts Options) *modelDriver {
	if opts.NCCL {
		return newNCCLDriver(predictionTop)
	}
	return newLateDriver(predictionTop)
}

// Play runs the requests of a trace on a fresh allocator. Its parts end before
// the given events, in order; the last one should be the end of the trace. A
// part in a loop has the highest peaks of all rounds. The error is that of the
// budget; running out of memory is part of the outcome.
func Play(t *trace.Trace, opts Options, ends []int) (*Outcome, error) {
	opts.Streams = t.Streams
	driver := predictionDriver(opts)
	p := &player{trace: t, work: opts.Budget, a: newAllocator(driver, opts), driver: driver, repeats: opts.Repeats}
	p.borrowBuffers()
	defer p.returnBuffers()
	return p.run(ends)
}

// PlaySettled is Play for what a process does once it has settled: the first
// parts run without a limit, then the cache is emptied, and only the others
// must fit. It says what a step takes without the fragmentation that the
// beginning leaves behind.
func PlaySettled(t *trace.Trace, opts Options, ends []int, settled int) (*Outcome, error) {
	opts.Streams = t.Streams
	limit := opts.Limit
	opts.Limit = 0
	driver := predictionDriver(opts)
	p := &player{trace: t, work: opts.Budget, a: newAllocator(driver, opts), driver: driver}
	p.settle = func(part int) {
		if part == settled {
			p.a.releaseCachedBlocks()
			p.a.limit = limit
		}
	}
	p.borrowBuffers()
	defer p.returnBuffers()
	return p.run(ends)
}

// Place runs a trace on a fresh allocator and returns it as a recording would
// have it: with addresses, every round of its loops, the traffic with the
// driver, an out-of-memory error at its end if there was one, and the segments
// that are left.
func Place(t *trace.Trace, opts Options) (*trace.Trace, *Outcome, error) {
	opts.Streams = t.Streams
	w := &placeWriter{
		modelDriver: *predictionDriver(opts),
		out:         &trace.Trace{Tables: t.Tables, Device: t.Device, Streams: t.Streams, Settings: opts.Settings},
		marks:       t.Marks,
	}
	events := t.EventsWithin(0, len(t.Events)) // capacity for all: growing would need it twice
	w.out.Events = make([]trace.Event, 0, events+events/8)
	p := &player{trace: t, work: opts.Budget, a: newAllocator(w, opts), driver: &w.modelDriver, writer: w}
	outcome, err := p.run([]int{len(t.Events)})
	if err != nil {
		return nil, nil, err
	}
	w.copyMarks(outcome.Events)
	w.out.Final = p.a.snapshot()
	return w.out, outcome, nil
}

type player struct {
	trace   *trace.Trace
	a       *cachingAllocator
	driver  *modelDriver
	work    *workbudget.Budget
	buffers *playBuffers // that the next player reuses, nil for none
	live    []liveBlock  // by allocation
	writer  *placeWriter
	settle  func(part int) // called before each part, nil for nothing
	loops   []trace.Loop   // that are still to come
	emptied []int          // likewise
	coming  []driverUse    // likewise
	rounds  *rounds        // of the loop that is being played, nil outside of loops
	repeats int            // see Options
	begun   traffic        // what had gone to the driver when the latest part began
	outcome Outcome
}

// liveBlock is where an allocation is.
type liveBlock struct {
	block blockIndex
	id    trace.ID // in the recording that is written
	size  int64    // likewise
}

// driverUse is something that makes the driver take memory for itself.
type driverUse struct {
	event int // before which it is
	takes func()
}

// uses are what the driver takes for the first kernel, which runs after the first request at
// the earliest, and for the first product.
func (p *player) uses() []driverUse {
	if !p.driver.late {
		return nil
	}
	out := []driverUse{{max(1, p.trace.Launched), func() { p.driver.launch(predictionTop) }}}
	if p.trace.Multiplied > 0 {
		out = append(out, driverUse{p.trace.Multiplied, p.driver.multiply})
	}
	if p.trace.TensorCores > 0 {
		out = append(out, driverUse{p.trace.TensorCores, p.driver.useTensorCores})
	}
	slices.SortStableFunc(out, func(a, b driverUse) int { return cmp.Compare(a.event, b.event) })
	return out
}

// useDriver does what comes before an event, and returns where to stop for the next.
func (p *player) useDriver(at, end int) int {
	for ; len(p.coming) > 0; p.coming = p.coming[1:] {
		if next := p.coming[0]; next.event > at {
			return min(end, next.event)
		}
		p.coming[0].takes()
	}
	return end
}

// eventsAtATime is how many events are played before the budget is checked.
const eventsAtATime = 4096

func (p *player) run(ends []int) (*Outcome, error) {
	p.live = slices.Grow(p.live, len(p.trace.Events)/3+1)
	p.loops, p.emptied, p.coming = p.trace.Loops, p.trace.Emptied, p.uses()
	for at, part := 0, 0; part < len(ends); {
		p.open(part)
		end := min(ends[part], at+eventsAtATime)
		for len(p.emptied) > 0 && p.emptied[0] == at {
			p.emptied = p.emptied[1:]
			p.a.releaseCachedBlocks()
		}
		if len(p.emptied) > 0 {
			end = min(end, p.emptied[0])
		}
		end = p.useDriver(at, end)
		if len(p.loops) > 0 {
			end = min(end, p.nextOfLoop(at))
		}
		if err := p.work.Spend(end - at); err != nil {
			return nil, err
		}
		if err := p.play(at, end, part > 0); err != nil {
			p.note(part)
			break
		}
		at = end
		if len(p.loops) > 0 && at == p.loops[0].To && p.again() {
			p.note(part)
			at = p.loops[0].From
			if first := partOf(at, ends); first != part {
				part = first
				p.a.stats.resetPeaks()
			}
			continue
		}
		if at == ends[part] {
			p.note(part)
			if part++; p.isRepeat(part) {
				p.skipRepeats(ends)
				break
			}
			if part < len(ends) {
				p.a.stats.resetPeaks() // also of one that was open before
			}
		}
	}
	p.outcome.Stats = p.a.stats
	outcome := p.outcome // alone: a pointer into the player would keep all of it
	return &outcome, nil
}

// partOf is the part that an event is in.
func partOf(event int, ends []int) int {
	part, _ := slices.BinarySearch(ends, event+1)
	return part
}

// open begins a part that is new.
func (p *player) open(part int) {
	if part < len(p.outcome.Parts) {
		return
	}
	if p.settle != nil {
		p.settle(part)
	}
	p.a.stats.resetPeaks()
	p.outcome.Parts = append(p.outcome.Parts, Usage{})
	p.begun = p.traffic()
}

// isRepeat reports whether a part and all after it repeat the one before. They
// do if they request the same and begin in the same state. The state is the
// segments, which no traffic with the driver has changed, and the blocks in them
// that are handed out, which are the same: free blocks are what lies between
// those, since neighbours are merged (R9). Ages of free blocks (R14) would be
// another part of it.
func (p *player) isRepeat(part int) bool {
	return p.repeats > 0 && part == p.repeats && p.traffic() == p.begun &&
		len(p.trace.Loops) == 0 && p.writer == nil && !p.a.collectsGarbage()
}

// skipRepeats notes parts that repeat the latest one, up to the last one.
func (p *player) skipRepeats(ends []int) {
	latest := p.outcome.Parts[len(p.outcome.Parts)-1]
	for len(p.outcome.Parts) < len(ends) {
		p.outcome.Parts = append(p.outcome.Parts, latest)
	}
	p.outcome.Events = ends[len(ends)-1]
}

// note writes down the statistics of a part, which may have had rounds before.
func (p *player) note(part int) {
	s, to := &p.a.stats, &p.outcome.Parts[part]
	to.PeakRequested = max(to.PeakRequested, bytesize.Bytes(s.RequestedBytes[All].Peak))
	to.PeakAllocated = max(to.PeakAllocated, bytesize.Bytes(s.AllocatedBytes[All].Peak))
	to.PeakReserved = max(to.PeakReserved, bytesize.Bytes(s.ReservedBytes[All].Peak))
	to.EndAllocated = bytesize.Bytes(s.AllocatedBytes[All].Current)
}

// play runs events.
func (p *player) play(from, to int, seekPeak bool) error {
	for i := from; i < to; i++ {
		if err := p.step(i, seekPeak); err != nil {
			return err
		}
	}
	return nil
}

// step runs one event. Frees complete at once: predictions free nothing on
// another stream than its own.
func (p *player) step(i int, seekPeak bool) error {
	e := &p.trace.Events[i]
	if p.writer != nil {
		p.writer.copyMarks(i)
	}
	switch e.Action {
	case trace.Alloc:
		if err := p.alloc(i, e); err != nil {
			return p.fail(e, err)
		}
		if now := bytesize.Bytes(p.a.stats.AllocatedBytes[All].Current); seekPeak && now > p.outcome.PeakAllocated {
			p.outcome.PeakEvent, p.outcome.PeakAllocated = i, now
			p.outcome.PeakRequested = bytesize.Bytes(p.a.stats.RequestedBytes[All].Current)
		}
	case trace.FreeRequested, trace.FreeCompleted:
		if p.writer != nil {
			p.writer.add(*e, p.a.addr(p.live[e.ID].block), p.live[e.ID])
		}
		if e.Action == trace.FreeCompleted {
			p.a.free(p.live[e.ID].block)
		}
	default: // nothing else is the program's doing
	}
	p.outcome.Events = i + 1
	return nil
}

func (p *player) alloc(i int, e *trace.Event) error {
	r := request{Size: e.Size, Stream: e.Stream, ID: e.ID, Stack: e.Stack}
	if p.writer != nil {
		p.writer.stream = e.Stream
		r.ID = p.writer.next
	}
	h, err := p.a.malloc(r)
	if err != nil && p.doesWithout(i) {
		r.Size = minBlockSize
		h, err = p.a.malloc(r)
	}
	if err != nil {
		return err
	}
	now := liveBlock{block: h, id: r.ID, size: r.Size}
	if int(e.ID) == len(p.live) {
		p.live = append(p.live, now)
	} else { // a round before had one of that name
		p.live[e.ID] = now
	}
	if p.writer != nil {
		p.writer.next++
		p.writer.add(*e, p.a.addr(h), now)
	}
	return nil
}

// doesWithout reports whether the program continues without the memory of an
// event: where there is none for a convolution's workspace, PyTorch tries
// the next algorithm, which takes less (aten/src/ATen/native/cudnn/Conv_v8.cpp,
// try_plans). Such a workspace is given back at once.
func (p *player) doesWithout(i int) bool {
	e := &p.trace.Events[i]
	if e.For != trace.Workspace || i+1 >= len(p.trace.Events) {
		return false
	}
	next := &p.trace.Events[i+1]
	return next.Action == trace.FreeRequested && next.ID == e.ID
}

func (p *player) fail(e *trace.Event, err error) error {
	if !errors.As(err, &p.outcome.Failed) {
		panic(fmt.Sprintf("allocator: %v is not an out-of-memory error", err))
	}
	if p.writer != nil {
		p.writer.outOfMemory(e, p.outcome.Failed, &p.a.settings)
	}
	return err
}

// placeWriter is the driver of a trace that is being placed, and writes down
// the allocator's calls.
type placeWriter struct {
	modelDriver
	out   *trace.Trace
	marks []trace.Mark // still to be copied
	next  trace.ID     // of the next allocation
	// stream is that of the latest request.
	stream uint16
}

// copyMarks copies the marks up to an event of the old trace to where the new
// one is.
func (w *placeWriter) copyMarks(until int) {
	for len(w.marks) > 0 && w.marks[0].Event <= until {
		m := w.marks[0]
		m.Event = len(w.out.Events)
		w.out.Marks = append(w.out.Marks, m)
		w.marks = w.marks[1:]
	}
}

func (w *placeWriter) add(e trace.Event, addr uint64, at liveBlock) {
	e.Addr, e.ID, e.Size = addr, at.id, at.size
	w.out.Events = append(w.out.Events, e)
}

func (w *placeWriter) segment(a trace.Action, addr uint64, size int64) {
	w.out.Events = append(w.out.Events, trace.Event{Action: a, Addr: addr, Size: size, ID: trace.None, Stream: w.stream})
}

func (w *placeWriter) outOfMemory(e *trace.Event, failed *OutOfMemoryError, settings *trace.Settings) {
	note := w.out.AddNote(trace.Note{DeviceFree: max(failed.Limit-failed.Reserved, 0)})
	w.out.Events = append(w.out.Events, trace.Event{
		Action: trace.OutOfMemory, Size: roundSize(e.Size, settings), ID: trace.None, Stack: e.Stack, Note: note,
	})
}

// Malloc writes down a segment_alloc.
func (w *placeWriter) malloc(size int64) (uint64, bool) {
	addr, ok := w.modelDriver.malloc(size)
	if ok {
		w.segment(trace.SegmentAlloc, addr, size)
	}
	return addr, ok
}

// Free writes down a segment_free.
func (w *placeWriter) free(addr uint64, size int64) {
	w.segment(trace.SegmentFree, addr, size)
	w.modelDriver.free(addr, size)
}

// Map writes down a segment_map.
func (w *placeWriter) mapPages(addr uint64, size int64) bool {
	w.segment(trace.SegmentMap, addr, size)
	return w.modelDriver.mapPages(addr, size)
}

// Unmap writes down a segment_unmap.
func (w *placeWriter) unmapPages(addr uint64, size int64) {
	w.segment(trace.SegmentUnmap, addr, size)
	w.modelDriver.unmapPages(addr, size)
}
