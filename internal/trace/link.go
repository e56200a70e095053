package trace

import (
	"cmp"
	"slices"
)

// Link is called once by a reader that has filled Events and Final: it gives
// every alloc, free and annotation the ID of its allocation, finds what was live before
// the first event (Initial), and names the allocations in the blocks of Final.
//
// What was live before shows in two ways: it is freed without having been
// allocated, or it is still there at the end without an event.
func (t *Trace) Link() {
	l := linker{live: make(map[uint64]openAllocation, 1024), early: make(map[uint64][]*Event)}
	for i := range t.Events {
		l.event(&t.Events[i])
	}
	for i := range t.Final {
		l.final(&t.Final[i])
	}
	if t.Final != nil {
		l.lost += len(l.live)
	}
	t.Lost = l.lost
	t.Initial = l.initial
	t.renumber(l.sortInitial())
}

// linker gives initial allocations the IDs -2, -3, … and the others 0, 1, …
// until all are known; renumber then shifts them.
type linker struct {
	live    map[uint64]openAllocation
	initial []Block
	// early has the annotations of addresses that are not known to be live yet.
	early map[uint64][]*Event
	next  ID
	lost  int
}

type openAllocation struct {
	id      ID
	pending bool // free_requested was seen
}

func (l *linker) event(e *Event) {
	e.ID = None
	switch e.Action {
	case Alloc:
		if _, ok := l.live[e.Addr]; ok {
			l.lost++
		}
		e.ID = l.next
		l.next++
		l.live[e.Addr] = openAllocation{id: e.ID}
		delete(l.early, e.Addr)
	case FreeRequested:
		o, ok := l.live[e.Addr]
		if !ok {
			o.id = l.before(Block{Addr: e.Addr, Requested: e.Size, State: Allocated})
		}
		if o.pending {
			l.lost++
		}
		o.pending = true
		l.live[e.Addr] = o
		e.ID = o.id
	case FreeCompleted:
		o, ok := l.live[e.Addr]
		if !ok {
			o.id = l.before(Block{Addr: e.Addr, Requested: e.Size, State: PendingFree})
		}
		e.ID = o.id
		delete(l.live, e.Addr)
	case Annotated:
		if o, ok := l.live[e.Addr]; ok {
			e.ID = o.id
		} else {
			l.early[e.Addr] = append(l.early[e.Addr], e)
		}
	default:
	}
}

// final matches the blocks of a segment with what the events left live.
func (l *linker) final(s *Segment) {
	for i := range s.Blocks {
		b := &s.Blocks[i]
		b.ID = None
		if b.State == Inactive {
			continue
		}
		o, ok := l.live[b.Addr]
		if !ok {
			o.id = l.before(*b)
		}
		if ok && o.pending != (b.State == PendingFree) {
			l.lost++
		}
		delete(l.live, b.Addr)
		b.ID = o.id
	}
}

// before records an allocation that was live before the first event.
func (l *linker) before(b Block) ID {
	l.initial = append(l.initial, b)
	id := -1 - ID(len(l.initial))
	for _, e := range l.early[b.Addr] {
		e.ID = id
	}
	delete(l.early, b.Addr)
	return id
}

// sortInitial orders the initial blocks by address and returns the index of
// each, in the order of discovery.
func (l *linker) sortInitial() []ID {
	for i := range l.initial {
		l.initial[i].ID = ID(i)
	}
	slices.SortFunc(l.initial, func(a, b Block) int {
		return cmp.Or(cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.ID, b.ID))
	})
	place := make([]ID, len(l.initial))
	for i := range l.initial {
		place[l.initial[i].ID] = ID(i)
		l.initial[i].ID = ID(i)
	}
	return place
}

func (t *Trace) renumber(place []ID) {
	n := ID(len(place))
	id := func(old ID) ID {
		switch {
		case old >= 0:
			return old + n
		case old < None:
			return place[-2-old]
		default:
			return None
		}
	}
	for i := range t.Events {
		t.Events[i].ID = id(t.Events[i].ID)
	}
	for i := range t.Final {
		for j := range t.Final[i].Blocks {
			b := &t.Final[i].Blocks[j]
			b.ID = id(b.ID)
		}
	}
}

// LinkMarks sets the event of each mark from its time and puts marks in order.
func (t *Trace) LinkMarks() {
	slices.SortStableFunc(t.Marks, func(a, b Mark) int { return cmp.Compare(a.Time, b.Time) })
	for i := range t.Marks {
		m := &t.Marks[i]
		m.Event, _ = slices.BinarySearchFunc(t.Events, m.Time, func(e Event, time int64) int {
			return cmp.Compare(e.Time, time)
		})
	}
}
