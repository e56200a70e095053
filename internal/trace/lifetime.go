package trace

// Lifetime is one allocation from its birth to its end. Events are named by
// their index; an allocation is live at an event if it is live once that event
// has happened.
type Lifetime struct {
	ID    ID
	Size  int64    // requested bytes
	Alloc int      // the alloc event, -1 if it was live before the first event
	Freed int      // the free_requested event, len(Events) if there is none
	Gone  int      // the free_completed event, len(Events) if there is none
	Stack StackID  // the requester, 0 if not recorded
	Note  NoteID   // rare details, 0 if none
	For   Category // what the memory is for, 0 if unknown
}

// LiveAt reports whether the allocation holds memory once the event has
// happened: it does until the free has completed. Event -1 is the moment
// before the first.
func (l *Lifetime) LiveAt(event int) bool { return l.Alloc <= event && event < l.Gone }

// Lifetimes returns all allocations of the trace; the index is the ID.
func (t *Trace) Lifetimes() []Lifetime {
	never := len(t.Events)
	out := make([]Lifetime, 0, t.Allocations())
	for _, b := range t.Initial {
		out = append(out, Lifetime{
			ID: b.ID, Size: b.Requested, Alloc: -1, Freed: never, Gone: never, Stack: b.Stack, Note: b.Note, For: b.For,
		})
	}
	for i := range t.Events {
		e := &t.Events[i]
		switch e.Action {
		case Alloc:
			out = append(out, Lifetime{
				ID: e.ID, Size: e.Size, Alloc: i, Freed: never, Gone: never, Stack: e.Stack, Note: e.Note, For: e.For,
			})
		case FreeRequested:
			out[e.ID].Freed = i
		case FreeCompleted:
			// A recording may hold only this half of a free.
			out[e.ID].Freed = min(out[e.ID].Freed, i)
			out[e.ID].Gone = i
		default:
		}
	}
	return out
}

// Live returns the allocations that hold memory at an event.
func Live(lifetimes []Lifetime, event int) []Lifetime {
	var out []Lifetime
	for i := range lifetimes {
		if lifetimes[i].LiveAt(event) {
			out = append(out, lifetimes[i])
		}
	}
	return out
}
