package allocator

import (
	"errors"
	"fmt"
	"slices"

	"memorymark/internal/effort"
	"memorymark/internal/trace"
)

// This file runs traces that have no addresses yet, such as predictions, on a
// fresh allocator. Play only counts; Place also writes down where everything
// went and what was taken from the driver, as a recording would.

// Stage is what the statistics say of a part of a trace, as if peaks had been
// reset at its beginning.
type Stage struct {
	PeakRequested int64
	PeakAllocated int64
	PeakReserved  int64
	EndAllocated  int64
}

// Course is how a trace went.
type Course struct {
	Stages []Stage
	// Events is how many events of the trace went well: all of them, unless it
	// failed.
	Events int
	Failed *OutOfMemoryError // nil if every request was met
	// Stats are those of the events that were played: sums lack stages that go
	// as others did.
	Stats Stats
	// The first event at which the most was allocated, from the second stage
	// on (the first one usually only builds the model), and what was asked for
	// and allocated then.
	PeakEvent     int
	PeakRequested int64
	PeakAllocated int64
}

// Fits reports whether every request was met.
func (c *Course) Fits() bool { return c.Failed == nil }

// predictionTop is where predicted segments lie below: an address as CUDA
// hands them out, with room for every card below it.
const predictionTop = 1 << 46

func predictionDriver(t *trace.Trace, opts Options) *ModelDriver {
	switch {
	case opts.NCCL:
		return newNCCLDriver(predictionTop)
	case t.Launched > 0:
		return newLateDriver(predictionTop)
	default:
		return NewModelDriver(predictionTop)
	}
}

// Play runs the requests of a trace on a fresh allocator. Stages end before
// the given events, in order; the last one should be the end of the trace. A
// stage in a loop has the highest peaks of all rounds. The error is of the
// effort; memory that runs out is part of the course.
func Play(t *trace.Trace, opts Options, stages []int) (*Course, error) {
	opts.Streams = t.Streams
	driver := predictionDriver(t, opts)
	p := &player{trace: t, effort: opts.Effort, a: New(driver, opts), driver: driver, alike: opts.Alike}
	p.occupy()
	defer p.vacate()
	return p.run(stages)
}

// PlaySettled is Play for what a process does once it has settled: the first
// stages run without a limit, then the cache is emptied, and only the others
// must fit. It says what a step takes without the fragmentation that the
// beginning leaves behind.
func PlaySettled(t *trace.Trace, opts Options, stages []int, settled int) (*Course, error) {
	opts.Streams = t.Streams
	limit := opts.Limit
	opts.Limit = 0
	driver := predictionDriver(t, opts)
	p := &player{trace: t, effort: opts.Effort, a: New(driver, opts), driver: driver}
	p.settle = func(stage int) {
		if stage == settled {
			p.a.EmptyCache()
			p.a.limit = limit
		}
	}
	p.occupy()
	defer p.vacate()
	return p.run(stages)
}

// Place runs a trace on a fresh allocator and returns it as a recording would
// have it: with addresses, every round of its loops, the traffic with the
// driver, an out-of-memory error at its end if there was one, and the segments
// that are left.
func Place(t *trace.Trace, opts Options) (*trace.Trace, *Course, error) {
	opts.Streams = t.Streams
	w := &placeWriter{
		ModelDriver: *predictionDriver(t, opts),
		out:         &trace.Trace{Tables: t.Tables, Device: t.Device, Streams: t.Streams, Settings: opts.Settings},
		marks:       t.Marks,
	}
	events := t.EventsWithin(0, len(t.Events)) // room for all: growing would hold them twice
	w.out.Events = make([]trace.Event, 0, events+events/8)
	p := &player{trace: t, effort: opts.Effort, a: New(w, opts), driver: &w.ModelDriver, writer: w}
	course, err := p.run([]int{len(t.Events)})
	if err != nil {
		return nil, nil, err
	}
	w.copyMarks(course.Events)
	w.out.Final = p.a.Segments()
	return w.out, course, nil
}

type player struct {
	trace   *trace.Trace
	a       *Allocator
	driver  *ModelDriver
	effort  *effort.Effort
	room    *playRoom   // that is left to the next player, nil for none
	live    []placement // by allocation
	writer  *placeWriter
	settle  func(stage int) // called before each stage, nil for nothing
	loops   []trace.Loop    // that are still to come
	emptied []int           // likewise
	coming  []use           // likewise
	rounds  *rounds         // of the loop that is being played, nil outside of loops
	alike   int             // see Options
	begun   traffic         // what had gone to the driver when the latest stage began
	course  Course
}

// placement is where an allocation is.
type placement struct {
	block Handle
	id    trace.ID // in the recording that is written
	size  int64    // likewise
}

// use is something that makes the driver take memory for itself.
type use struct {
	event int // before which it is
	takes func()
}

// uses are those of a late process.
func (p *player) uses() []use {
	if p.trace.Launched == 0 || !p.driver.late {
		return nil
	}
	out := []use{{p.trace.Launched, func() { p.driver.launch(predictionTop) }}}
	if p.trace.Multiplied > 0 {
		out = append(out, use{p.trace.Multiplied, p.driver.multiply})
	}
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

// eventsAtATime is how many events are played before the effort is asked.
const eventsAtATime = 4096

func (p *player) run(stages []int) (*Course, error) {
	p.live = slices.Grow(p.live, len(p.trace.Events)/3+1)
	p.loops, p.emptied, p.coming = p.trace.Loops, p.trace.Emptied, p.uses()
	for at, stage := 0, 0; stage < len(stages); {
		p.open(stage)
		end := min(stages[stage], at+eventsAtATime)
		for len(p.emptied) > 0 && p.emptied[0] == at {
			p.emptied = p.emptied[1:]
			p.a.EmptyCache()
		}
		if len(p.emptied) > 0 {
			end = min(end, p.emptied[0])
		}
		end = p.useDriver(at, end)
		if len(p.loops) > 0 {
			end = min(end, p.nextOfLoop(at))
		}
		if err := p.effort.Spend(end - at); err != nil {
			return nil, err
		}
		if err := p.play(at, end, stage > 0); err != nil {
			p.note(stage)
			break
		}
		at = end
		if len(p.loops) > 0 && at == p.loops[0].To && p.again() {
			p.note(stage)
			at = p.loops[0].From
			if first := stageOf(at, stages); first != stage {
				stage = first
				p.a.stats.ResetPeaks()
			}
			continue
		}
		if at == stages[stage] {
			p.note(stage)
			if stage++; p.isAlike(stage) {
				p.skipAlike(stages)
				break
			}
			if stage < len(stages) {
				p.a.stats.ResetPeaks() // also of one that was open before
			}
		}
	}
	p.course.Stats = p.a.stats
	course := p.course // alone: a pointer into the player would keep all of it
	return &course, nil
}

// stageOf is the stage that an event is in.
func stageOf(event int, stages []int) int {
	stage, _ := slices.BinarySearch(stages, event+1)
	return stage
}

// open begins a stage that is new.
func (p *player) open(stage int) {
	if stage < len(p.course.Stages) {
		return
	}
	if p.settle != nil {
		p.settle(stage)
	}
	p.a.stats.ResetPeaks()
	p.course.Stages = append(p.course.Stages, Stage{})
	p.begun = p.traffic()
}

// isAlike reports whether a stage and all after it go as the one before did. They
// do if they ask for the same and begin in the same state. The state is the
// segments, which no traffic with the driver has changed, and the blocks in them
// that are handed out, which are the same: free blocks are what lies between
// those, since neighbours are merged (R9). Ages of free blocks (R14) would be
// another part of it.
func (p *player) isAlike(stage int) bool {
	return p.alike > 0 && stage == p.alike && p.traffic() == p.begun &&
		len(p.trace.Loops) == 0 && p.writer == nil && !p.a.collectsGarbage()
}

// skipAlike notes stages that go as the latest one did, up to the last one.
func (p *player) skipAlike(stages []int) {
	latest := p.course.Stages[len(p.course.Stages)-1]
	for len(p.course.Stages) < len(stages) {
		p.course.Stages = append(p.course.Stages, latest)
	}
	p.course.Events = stages[len(stages)-1]
}

// note takes down the statistics of a stage, which may have had rounds before.
func (p *player) note(stage int) {
	s, to := &p.a.stats, &p.course.Stages[stage]
	to.PeakRequested = max(to.PeakRequested, s.RequestedBytes[All].Peak)
	to.PeakAllocated = max(to.PeakAllocated, s.AllocatedBytes[All].Peak)
	to.PeakReserved = max(to.PeakReserved, s.ReservedBytes[All].Peak)
	to.EndAllocated = s.AllocatedBytes[All].Current
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
		if now := p.a.stats.AllocatedBytes[All].Current; seekPeak && now > p.course.PeakAllocated {
			p.course.PeakEvent, p.course.PeakAllocated = i, now
			p.course.PeakRequested = p.a.stats.RequestedBytes[All].Current
		}
	case trace.FreeRequested, trace.FreeCompleted:
		if p.writer != nil {
			p.writer.add(*e, p.a.Addr(p.live[e.ID].block), p.live[e.ID])
		}
		if e.Action == trace.FreeCompleted {
			p.a.Free(p.live[e.ID].block)
		}
	default: // nothing else is the program's doing
	}
	p.course.Events = i + 1
	return nil
}

func (p *player) alloc(i int, e *trace.Event) error {
	r := Request{Size: e.Size, Stream: e.Stream, ID: e.ID, Stack: e.Stack}
	if p.writer != nil {
		p.writer.stream = e.Stream
		r.ID = p.writer.next
	}
	h, err := p.a.Malloc(r)
	if err != nil && p.doesWithout(i) {
		r.Size = minBlock
		h, err = p.a.Malloc(r)
	}
	if err != nil {
		return err
	}
	now := placement{block: h, id: r.ID, size: r.Size}
	if int(e.ID) == len(p.live) {
		p.live = append(p.live, now)
	} else { // a round before had one of that name
		p.live[e.ID] = now
	}
	if p.writer != nil {
		p.writer.next++
		p.writer.add(*e, p.a.Addr(h), now)
	}
	return nil
}

// doesWithout reports whether the program goes on if it does not get the memory
// of an event: where there is none for a convolution's workspace, PyTorch tries
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
	if !errors.As(err, &p.course.Failed) {
		panic(fmt.Sprintf("allocator: %v is not an out-of-memory error", err))
	}
	if p.writer != nil {
		p.writer.outOfMemory(e, p.course.Failed, &p.a.settings)
	}
	return err
}

// placeWriter is the driver of a trace that is being placed, and writes down
// what the allocator asks of it.
type placeWriter struct {
	ModelDriver
	out   *trace.Trace
	marks []trace.Mark // still to be copied
	next  trace.ID     // of the next allocation
	// stream is the one that memory is asked for.
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

func (w *placeWriter) add(e trace.Event, addr uint64, at placement) {
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
func (w *placeWriter) Malloc(size int64) (uint64, bool) {
	addr, ok := w.ModelDriver.Malloc(size)
	if ok {
		w.segment(trace.SegmentAlloc, addr, size)
	}
	return addr, ok
}

// Free writes down a segment_free.
func (w *placeWriter) Free(addr uint64, size int64) {
	w.segment(trace.SegmentFree, addr, size)
	w.ModelDriver.Free(addr, size)
}

// Map writes down a segment_map.
func (w *placeWriter) Map(addr uint64, size int64) bool {
	w.segment(trace.SegmentMap, addr, size)
	return w.ModelDriver.Map(addr, size)
}

// Unmap writes down a segment_unmap.
func (w *placeWriter) Unmap(addr uint64, size int64) {
	w.segment(trace.SegmentUnmap, addr, size)
	w.ModelDriver.Unmap(addr, size)
}
