package torch

import (
	"slices"
	"sync"

	"memorymark/internal/trace"
	"memorymark/internal/workbudget"
)

// heap holds the objects of a process. A process that has ended leaves it to
// the next: collecting it took as long as filling it.
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
	// slabLength is how many values are allocated at a time.
	slabLength = 128
	// keptSlabs is how many slabs are kept for the next process: a few megabytes.
	keptSlabs = 400
)

// slab allocates zeroed values in bulk: a step makes tens of thousands, and
// allocating them one by one took most of its time.
type slab[T any] struct {
	rest []T   // of the latest
	kept [][]T // for the next process, those in use first
	used int
}

func (s *slab[T]) next() *T { return &s.take(1)[0] }

// take returns n consecutive values.
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

// maxEvents bounds the events of a process: a hundred megabytes, plus six times as
// much for tensors and their graph.
const maxEvents = 2 << 20

// tensorWork is the cost of a tensor, in events that an allocator plays: the operator
// that makes it, its node of the graph, and garbage collection. In a process of many
// events it is half as much again, because of cache misses.
const (
	tensorWork = 4
	manyEvents = 1 << 17
)

// newTensor returns a tensor to be filled in. Everything a process does makes
// tensors, so this is where it checks its budget.
func (t *Torch) newTensor() *Tensor {
	if len(t.tensors.rest) == 0 {
		t.Spend(slabLength * tensorWork)
		if len(t.trace.Events) > manyEvents {
			t.Spend(slabLength * tensorWork / 2)
		}
		if len(t.trace.Events) > maxEvents {
			panic(Interruption{workbudget.ErrTooMuch})
		}
	}
	return t.tensors.next()
}

// Spend charges work that is about to be done, in events that are played, to
// the budget, and interrupts the process if that is too much.
func (t *Torch) Spend(events int) {
	if err := t.Budget.Spend(events); err != nil {
		panic(Interruption{err})
	}
}

// searchedPerEvent is how many values are compared in the time of an event.
const searchedPerEvent = 256

// indexIn is slices.Index, counted: the lists of a deep model are long.
func indexIn[T comparable](t *Torch, list []T, value T) int {
	t.Spend(len(list) / searchedPerEvent)
	return slices.Index(list, value)
}

// unlist removes a parameter from the list.
func (t *Torch) unlist(p *Tensor) {
	if i := indexIn(t, t.parameters, p); i >= 0 {
		t.parameters = slices.Delete(t.parameters, i, i+1)
	}
}

// eventBuffers recycles the slices of discarded traces.
var eventBuffers = sync.Pool{New: func() any {
	buffer := make([]trace.Event, 0, 1<<12) // the smallest models have more
	return &buffer
}}

// maxBuffer is the largest capacity, in events, that is kept.
const maxBuffer = 1 << 20

// Expect reserves capacity for n events.
func (t *Torch) Expect(events int) { t.trace.Events = slices.Grow(t.trace.Events, events) }

// Forget recycles the trace of a process that has ended. It must not be used
// afterwards.
func (t *Torch) Forget() {
	if buffer := t.trace.Events; cap(buffer) <= maxBuffer {
		eventBuffers.Put(&buffer)
	}
	t.trace, t.questions = nil, nil
}

// End ends the process. Only its trace may be used afterwards.
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
