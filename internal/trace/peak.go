package trace

// Level is how much was live at an event.
type Level struct {
	Event int   // index of the event, -1 before the first
	Bytes int64 // requested bytes
	Count int   // allocations
}

// Peak returns the first moment at which the most requested bytes were live. A
// free counts when it has completed: until then the memory cannot be reused.
func (t *Trace) Peak() Level {
	now := Level{Event: -1, Count: len(t.Initial)}
	for _, b := range t.Initial {
		now.Bytes += b.Requested
	}
	peak := now
	sizes := t.sizes()
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Action {
		case Alloc:
			now.Bytes += e.Size
			now.Count++
		case FreeCompleted:
			now.Bytes -= sizes[e.ID]
			now.Count--
		default:
		}
		if now.Bytes > peak.Bytes {
			peak = now
			peak.Event = i
		}
	}
	return peak
}

// sizes returns the requested bytes of every allocation. A free repeats the
// size, but only as the recording has it.
func (t *Trace) sizes() []int64 {
	out := make([]int64, 0, t.Allocations())
	for _, b := range t.Initial {
		out = append(out, b.Requested)
	}
	for i := range t.Events {
		if t.Events[i].Action == Alloc {
			out = append(out, t.Events[i].Size)
		}
	}
	return out
}

// At returns how much is live at an event.
func At(lifetimes []Lifetime, event int) Level {
	l := Level{Event: event}
	for i := range lifetimes {
		if lifetimes[i].LiveAt(event) {
			l.Bytes += lifetimes[i].Size
			l.Count++
		}
	}
	return l
}

// Count returns how often an action occurs.
func (t *Trace) Count(a Action) int {
	n := 0
	for i := range t.Events {
		if t.Events[i].Action == a {
			n++
		}
	}
	return n
}
