package recording

import (
	"strings"

	"memorymark/internal/trace"
)

// Search selects events. Zero fields do not restrict it.
type Search struct {
	From       int            // the first event that may be found
	Actions    []trace.Action // any of them
	MinBytes   int64
	MaxBytes   int64
	Address    uint64 // within the event's memory
	Frame      string // in some frame of the stack, ignoring case
	Allocation *trace.ID
}

// Find returns the first n events that match, and where to continue; next is -1
// at the end.
func (r *Recording) Find(s Search, n int) (events []int, next int) {
	stacks := r.stacksWith(s.Frame)
	events = []int{}
	for i := max(s.From, 0); i < len(r.Events); i++ {
		if !s.matches(&r.Events[i], stacks) {
			continue
		}
		if len(events) == n {
			return events, i
		}
		events = append(events, i)
	}
	return events, -1
}

func (s *Search) matches(e *trace.Event, stacks []bool) bool {
	switch {
	case len(s.Actions) > 0 && !containsAction(s.Actions, e.Action),
		e.Size < s.MinBytes,
		s.MaxBytes > 0 && e.Size > s.MaxBytes,
		s.Allocation != nil && e.ID != *s.Allocation,
		s.Address > 0 && (e.Addr > s.Address || s.Address-e.Addr >= uint64(max(e.Size, 1))),
		stacks != nil && !stacks[e.Stack]:
		return false
	}
	return true
}

func containsAction(actions []trace.Action, a trace.Action) bool {
	for _, x := range actions {
		if x == a {
			return true
		}
	}
	return false
}

// stacksWith returns for each stack whether a text is in one of its frames,
// nil if there is no text. There are few stacks, and millions of events.
func (r *Recording) stacksWith(text string) []bool {
	if text == "" {
		return nil
	}
	text = strings.ToLower(text)
	frames := make(map[trace.Frame]bool)
	out := make([]bool, r.Stacks.Len())
	for i := range out {
		for _, f := range r.Stacks.Frames(trace.StackID(i)) {
			found, known := frames[f]
			if !known {
				found = strings.Contains(strings.ToLower(f.File+" "+f.Name), text)
				frames[f] = found
			}
			if found {
				out[i] = true
				break
			}
		}
	}
	return out
}
