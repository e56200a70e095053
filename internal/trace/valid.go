package trace

import "fmt"

// CheckValid reports the first contradiction in a trace. It guarantees:
//
//   - Initial[i] has ID i; the k-th alloc has ID len(Initial)+k.
//   - A free names an allocation that is live; each allocation is requested
//     free at most once and completed at most once.
//   - Sizes are not negative; stacks, notes and streams exist.
//   - Segments of Final are in order of address and do not overlap, and their
//     blocks tile them.
//   - The blocks of Final that are in use are exactly the allocations that the
//     events leave live.
//   - Marks are in order and point into the trace, and so do loops.
func (t *Trace) CheckValid() error {
	if t.Lost > 0 {
		return fmt.Errorf("%d events contradict the others, as if some kinds of events had been left out of the recording", t.Lost)
	}
	live, err := t.checkEvents()
	if err != nil {
		return err
	}
	if err := t.checkFinal(live); err != nil {
		return err
	}
	last := 0
	for i, m := range t.Marks {
		if m.Event < last || m.Event > len(t.Events) {
			return fmt.Errorf("mark %d (%s): event %d is out of order", i, m.Name, m.Event)
		}
		last = m.Event
	}
	last = 0
	for i, l := range t.Loops {
		if l.From < last || l.To <= l.From || l.To > len(t.Events) || l.Times < 2 {
			return fmt.Errorf("loop %d: %+v is out of order", i, l)
		}
		last = l.To
	}
	return nil
}

// checkEvents returns the state of every allocation after the last event.
func (t *Trace) checkEvents() ([]State, error) {
	state := make([]State, len(t.Initial), t.Allocations())
	for i, b := range t.Initial {
		if b.ID != ID(i) || b.State == Inactive || b.Requested < 0 {
			return nil, fmt.Errorf("initial allocation %d: %+v", i, b)
		}
		state[i] = b.State
	}
	for i := range t.Events {
		e := &t.Events[i]
		if e.Size < 0 || int(e.Stack) >= t.Stacks.Len() || int(e.Note) >= len(t.Notes) || int(e.Stream) >= len(t.Streams) {
			return nil, fmt.Errorf("event %d: %+v is out of range", i, *e)
		}
		switch e.Action {
		case Alloc:
			if e.ID != ID(len(state)) {
				return nil, fmt.Errorf("event %d: allocation %d where %d is next", i, e.ID, len(state))
			}
			state = append(state, Allocated)
		case FreeRequested, FreeCompleted:
			if e.ID < 0 || int(e.ID) >= len(state) || state[e.ID] == Inactive {
				return nil, fmt.Errorf("event %d: %s of an allocation that is not live", i, e.Action)
			}
			if e.Action == FreeRequested && state[e.ID] == PendingFree {
				return nil, fmt.Errorf("event %d: allocation %d is freed twice", i, e.ID)
			}
			if e.Action == FreeRequested {
				state[e.ID] = PendingFree
			} else {
				state[e.ID] = Inactive
			}
		default:
		}
	}
	return state, nil
}

func (t *Trace) checkFinal(live []State) error {
	if t.Final == nil {
		return nil
	}
	var end uint64
	for i := range t.Final {
		s := &t.Final[i]
		if s.Addr < end || s.Size <= 0 {
			return fmt.Errorf("segment %d at %#x overlaps the one before or is empty", i, s.Addr)
		}
		end = s.Addr
		for j, b := range s.Blocks {
			if b.Addr != end || b.Size <= 0 {
				return fmt.Errorf("segment %#x: block %d at %#x does not follow the one before", s.Addr, j, b.Addr)
			}
			end += uint64(b.Size)
			if b.State == Inactive {
				continue
			}
			if int(b.ID) >= len(live) || live[b.ID] != b.State {
				return fmt.Errorf("segment %#x: block %#x is %s, the events say otherwise", s.Addr, b.Addr, b.State)
			}
			live[b.ID] = Inactive
		}
		if end != s.Addr+uint64(s.Size) {
			return fmt.Errorf("segment %#x: its blocks end at %#x and not at %#x", s.Addr, end, s.Addr+uint64(s.Size))
		}
	}
	for id, s := range live {
		if s != Inactive {
			return fmt.Errorf("allocation %d is %s at the end, but no segment holds it", id, s)
		}
	}
	return nil
}
