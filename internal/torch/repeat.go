package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// Repeat repeats a range of events, for a step that begins and ends in the same
// state: the allocations it leaves match the older ones it freed in number, sizes
// and origin. It reports false, and does nothing, if the states differ. The step
// is closed if it leaves nothing and frees nothing older.
func (t *Torch) Repeat(from, to int) (ok, closed bool) {
	turnover, ok := t.turnover(from, to)
	if !ok {
		return false, false
	}
	shift := t.next - turnover.First
	t.trace.Events = slices.Grow(t.trace.Events, to-from)
	for _, e := range t.trace.Events[from:to] {
		switch {
		case e.ID >= turnover.First:
			e.ID += shift
		case e.ID >= 0:
			i, _ := slices.BinarySearch(turnover.Older, e.ID)
			e.ID = turnover.Left[i]
		}
		t.trace.Events = append(t.trace.Events, e)
	}
	t.next += shift
	t.questions.repeat(from, to, to-from)
	for _, l := range t.trace.Loops {
		if l.From >= from && l.To <= to {
			t.trace.Loops = append(t.trace.Loops, trace.Loop{From: l.From + to - from, To: l.To + to - from, Times: l.Times})
		}
	}
	for _, m := range t.trace.Marks {
		if m.Event >= from && m.Event <= to && (m.Event > from || !m.End) {
			m.Event += to - from
			t.trace.Marks = append(t.trace.Marks, m)
		}
	}
	return true, len(turnover.Older) == 0
}

// Repeatable reports whether Repeat would succeed.
func (t *Torch) Repeatable(from, to int) bool {
	_, ok := t.turnover(from, to)
	return ok
}

// Loop turns the last events, from one on, into a loop of that many rounds, if
// they begin and end in the same state, as for Repeat. It reports whether they
// do. Work is that of a round.
func (t *Torch) Loop(from, times int, round Work) bool {
	end := len(t.trace.Events)
	if _, ok := t.turnover(from, end); !ok {
		return false
	}
	t.trace.Loops = append(t.trace.Loops, trace.Loop{From: from, To: end, Times: times})
	t.work.Add(round.Times(float64(times - 1)))
	return true
}

// turnover returns what a range of events, up to the last one, allocated and freed;
// ok is false if the two do not match.
func (t *Torch) turnover(from, to int) (out trace.Turnover, ok bool) {
	out = trace.TurnoverOf(t.trace.Events[from:to])
	if out.First == trace.None || len(out.Older) != len(out.Left) {
		return out, false
	}
	if len(out.Older) == 0 {
		return out, true
	}
	made := t.allocEvents(append(slices.Clone(out.Older), out.Left...))
	for i := range out.Older {
		a, b := made[i], made[len(out.Older)+i]
		if a.Size != b.Size || a.Stack != b.Stack || a.Stream != b.Stream || a.For != b.For {
			return out, false
		}
	}
	return out, true
}

// allocEvents returns the events of some allocations, which are in order.
func (t *Torch) allocEvents(ids []trace.ID) []*trace.Event {
	out := make([]*trace.Event, 0, len(ids))
	for i := range t.trace.Events {
		if e := &t.trace.Events[i]; len(out) < len(ids) && e.Action == trace.Alloc && e.ID == ids[len(out)] {
			out = append(out, e)
		}
	}
	return out
}
