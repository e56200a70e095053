package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// Repeat asks for the same again as the events from one to another did, as a
// step does that begins and ends in the same state: what it left behind is what
// it freed that was older, in number and sizes. It reports false, and does
// nothing, if the states differ. The step is closed if it left nothing behind
// and freed nothing that was older.
func (t *Torch) Repeat(from, to int) (ok, closed bool) {
	first, heir, ok := t.heirs(from, to)
	if !ok {
		return false, false
	}
	shift := t.next - first
	t.trace.Events = slices.Grow(t.trace.Events, to-from)
	for _, e := range t.trace.Events[from:to] {
		switch {
		case e.ID >= first:
			e.ID += shift
		case e.ID >= 0:
			e.ID = heir[e.ID]
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
	return true, len(heir) == 0
}

// Repeatable reports whether Repeat would do something.
func (t *Torch) Repeatable(from, to int) bool {
	_, _, ok := t.heirs(from, to)
	return ok
}

// heirs is the first allocation of a stretch of events, which are the last ones,
// and for each older one that it freed the one that it left in its place; ok is
// false if these are not alike.
func (t *Torch) heirs(from, to int) (first trace.ID, heir map[trace.ID]trace.ID, ok bool) {
	first, older, left := t.turnover(from, to)
	if first < 0 || len(older) != len(left) {
		return first, nil, false
	}
	if len(older) == 0 {
		return first, nil, true
	}
	heir = make(map[trace.ID]trace.ID, len(older))
	sizes := t.sizes()
	for i, id := range older {
		if sizes[id] != sizes[left[i]] {
			return first, nil, false
		}
		heir[id] = left[i]
	}
	return first, heir, true
}

// turnover is what happened to memory in a stretch of events, which are the
// last ones: the first allocation, none if there is none, and by age the
// allocations from before that were freed and those that were made and still
// are.
func (t *Torch) turnover(from, to int) (first trace.ID, older, left []trace.ID) {
	first = trace.None
	gone := make([]bool, t.next)
	events := t.trace.Events[from:to]
	for i := range events {
		switch e := &events[i]; e.Action {
		case trace.Alloc:
			if first == trace.None {
				first = e.ID
			}
		case trace.FreeCompleted:
			gone[e.ID] = true
		default:
		}
	}
	for i, g := range gone {
		switch id := trace.ID(i); {
		case g && (first == trace.None || id < first):
			older = append(older, id)
		case !g && first != trace.None && id >= first:
			left = append(left, id)
		}
	}
	return first, older, left
}

// sizes are those of all allocations.
func (t *Torch) sizes() []int64 {
	out := make([]int64, 0, t.next)
	for i := range t.trace.Events {
		if e := &t.trace.Events[i]; e.Action == trace.Alloc {
			out = append(out, e.Size)
		}
	}
	return out
}

// Loop makes the events from second on, which are the last ones, a loop of so
// many rounds, if the events from first to second were alike: a round that does
// the same as the one before, to what that one made, goes on doing so. It
// reports whether they were.
func (t *Torch) Loop(first, second, times int, round Work) bool {
	end := len(t.trace.Events)
	if !t.alike(t.trace.Events[first:second], t.trace.Events[second:end]) {
		return false
	}
	t.trace.Loops = append(t.trace.Loops, trace.Loop{From: second, To: end, Times: times})
	t.work = t.work.Plus(round.Times(float64(times - 1)))
	return true
}

// alike reports whether the events b do again what the events a before them did:
// they free what a made where a freed something older, and leave nothing of it.
func (t *Torch) alike(a, b []trace.Event) bool {
	if len(a) != len(b) || len(a) == 0 {
		return false
	}
	made, freed := trace.ID(0), trace.ID(0)
	for i := range a {
		if a[i].Action == trace.Alloc {
			made++
		}
	}
	first := t.next - 2*made // of a
	for i := range a {
		x, y := a[i], b[i]
		switch {
		case x.ID >= first:
			x.ID += made
		case y.ID < first || y.ID >= first+made:
			return false
		default: // something older, and what a made in its place
			x.ID = y.ID
		}
		if x != y {
			return false
		}
		if y.Action == trace.FreeCompleted {
			freed++
		}
	}
	return freed == made
}
