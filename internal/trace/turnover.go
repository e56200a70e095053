package trace

import "slices"

// Turnover is what a range of events does to the allocations around it. If it
// begins and ends in the same state, Left replace Older.
type Turnover struct {
	First ID   // allocation of the stretch, None if there is none
	Older []ID // allocations from before the stretch that it frees, by age
	Left  []ID // allocations that it makes and does not free, by age
}

// TurnoverOf computes it for a range of a trace without addresses, whose IDs are
// in the order of the allocations.
func TurnoverOf(events []Event) Turnover {
	out, made := Turnover{First: None}, 0
	for i := range events {
		if e := &events[i]; e.Action == Alloc {
			if made++; out.First == None {
				out.First = e.ID
			}
		}
	}
	gone := make([]bool, made)
	for i := range events {
		switch e := &events[i]; {
		case e.Action != FreeCompleted:
		case out.First == None || e.ID < out.First:
			out.Older = append(out.Older, e.ID)
		default:
			gone[e.ID-out.First] = true
		}
	}
	slices.Sort(out.Older)
	for i, g := range gone {
		if !g {
			out.Left = append(out.Left, out.First+ID(i))
		}
	}
	return out
}
