package torch

import (
	"slices"
	"sync"

	"memorymark/internal/effort"
	"memorymark/internal/trace"
)

// heap is what a process is made of. One that has ended leaves it to the
// next: collecting it took as long as filling it.
type heap struct {
	tensors  slab[Tensor]
	storages slab[storage]
	nodes    slab[node]
	edges    slab[edge]
	ints     slab[int64]
	vars     slab[Var]
	calls    slab[Frame]
	lists    slab[*Tensor]
	path     []*node // through the graph, while dependencies are counted
	seen     []*node // likewise
}

var heaps = sync.Pool{New: func() any { return new(heap) }}

const (
	// slabLength is how many values are made at a time.
	slabLength = 128
	// keptSlabs is how many of them are kept for the next process: some megabytes.
	keptSlabs = 400
)

// slab hands out zeroed values many at a time: a step makes tens of thousands,
// and most of its time went into allocating them one by one.
type slab[T any] struct {
	rest []T   // of the latest
	kept [][]T // for the next process, those in use first
	used int
}

func (s *slab[T]) next() *T { return &s.take(1)[0] }

// take returns so many values in a row.
func (s *slab[T]) take(n int) []T {
	if len(s.rest) < n || s.rest == nil {
		s.more(n)
	}
	out := s.rest[:n:n]
	s.rest = s.rest[n:]
	return out
}

func (s *slab[T]) more(n int) {
	switch {
	case n > slabLength:
		s.rest = make([]T, n)
		return
	case s.used < len(s.kept):
		s.rest = s.kept[s.used]
	default:
		s.rest = make([]T, slabLength)
		if len(s.kept) == keptSlabs {
			return
		}
		s.kept = append(s.kept, s.rest)
	}
	s.used++
}

// reset takes all values back.
func (s *slab[T]) reset() {
	for _, values := range s.kept[:s.used] {
		clear(values)
	}
	s.rest, s.used = nil, 0
}

// mostEvents is how many events a process may have: a hundred megabytes, beside six
// times as much that it holds of tensors and their graph.
const mostEvents = 2 << 20

// tensorEffort is what a tensor takes, in events that an allocator plays: the
// operator that makes it, its node of the graph, and what is collected of both. In
// a process of many events it takes half as much again: what it needs is in no cache.
const (
	tensorEffort = 4
	manyEvents   = 1 << 17
)

// newTensor returns a tensor to be filled in. Whatever a process does makes
// tensors, so this is where it asks whether to go on.
func (t *Torch) newTensor() *Tensor {
	if len(t.tensors.rest) == 0 {
		t.Spend(slabLength * tensorEffort)
		if len(t.trace.Events) > manyEvents {
			t.Spend(slabLength * tensorEffort / 2)
		}
		if len(t.trace.Events) > mostEvents {
			panic(Interruption{effort.ErrTooMuch})
		}
	}
	return t.tensors.next()
}

// Spend takes from the effort of the process what is about to be done, in events
// that are played, and interrupts the process if that is too much.
func (t *Torch) Spend(events int) {
	if err := t.Effort.Spend(events); err != nil {
		panic(Interruption{err})
	}
}

// searchedPerEvent is how many values are compared in the time that an event takes.
const searchedPerEvent = 256

// indexIn is slices.Index, counted: the lists of a deep model are long.
func indexIn[T comparable](t *Torch, list []T, value T) int {
	t.Spend(len(list) / searchedPerEvent)
	return slices.Index(list, value)
}

// unlist takes a parameter off the list.
func (t *Torch) unlist(p *Tensor) {
	if i := indexIn(t, t.parameters, p); i >= 0 {
		t.parameters = slices.Delete(t.parameters, i, i+1)
	}
}

// eventRooms are what events were in that nobody looks at any more.
var eventRooms = sync.Pool{New: func() any {
	room := make([]trace.Event, 0, 1<<12) // the smallest models have more
	return &room
}}

// mostRoom is how many events of room are worth keeping.
const mostRoom = 1 << 20

// Expect makes room for so many events.
func (t *Torch) Expect(events int) { t.trace.Events = slices.Grow(t.trace.Events, events) }

// Forget gives up the trace of a process that has ended: nobody may look at it
// any more.
func (t *Torch) Forget() {
	if room := t.trace.Events; cap(room) <= mostRoom {
		eventRooms.Put(&room)
	}
	t.trace, t.questions = nil, nil
}

// End ends the process. Only its trace may be looked at afterwards.
func (t *Torch) End() {
	w := t.heap
	w.tensors.reset()
	w.storages.reset()
	w.nodes.reset()
	w.edges.reset()
	w.ints.reset()
	w.vars.reset()
	w.calls.reset()
	w.lists.reset()
	clear(w.path[:cap(w.path)])
	clear(w.seen[:cap(w.seen)])
	*t = Torch{device: t.device, questions: t.questions, Version: t.Version, Name: t.Name, trace: t.trace, work: t.work}
	heaps.Put(w)
}
