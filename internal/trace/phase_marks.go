package trace

import (
	"cmp"
	"slices"
)

// PhaseMarks returns the marks of the trace. If the program set none around its
// forward and backward passes, marks are inferred from stacks; see phases.
func (t *Trace) PhaseMarks() []Mark {
	type ranked struct {
		Mark
		rank int // at one event: what was inferred ends, what the program says, what was inferred begins
	}
	var all []ranked
	for _, m := range t.Marks {
		if m.Name == ForwardMark || m.Name == BackwardMark {
			return t.Marks
		}
		all = append(all, ranked{m, 1})
	}
	for _, s := range t.passes() {
		all = append(all, ranked{Mark{Name: s.name, Event: s.from}, 2}, ranked{Mark{Name: s.name, Event: s.to, End: true}, 0})
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(a.rank, b.rank))
	})
	marks := make([]Mark, len(all))
	for i, m := range all {
		marks[i] = m.Mark
	}
	return marks
}

// pass is a forward or a backward pass.
type pass struct {
	name     string
	from, to int // events, to excluded
}

func (t *Trace) passes() []pass {
	names := map[phase]string{forward: ForwardMark, backward: BackwardMark}
	tt := t.timetable()
	var out []pass
	for from := 0; from < len(t.Events); {
		to := from + 1
		for to < len(t.Events) && tt.span[to] == tt.span[from] {
			to++
		}
		if name := names[tt.phase[from].outer()]; name != "" {
			out = append(out, pass{name, from, to})
		}
		from = to
	}
	return out
}
