package torch

import "memorymark/internal/trace"

// Repeat asks for the same again as the events from one to another did, as a
// step does that begins and ends in the same state: what it left behind is what
// it freed that was older, in number and sizes. It reports false, and does
// nothing, if the states differ.
func (t *Torch) Repeat(from, to int) bool {
	first, older, left := t.turnover(from, to)
	if first < 0 || len(older) != len(left) {
		return false
	}
	heir := make(map[trace.ID]trace.ID, len(older))
	if len(older) > 0 {
		sizes := t.sizes()
		for i, id := range older {
			if sizes[id] != sizes[left[i]] {
				return false
			}
			heir[id] = left[i]
		}
	}
	shift := t.next - first
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
	for _, m := range t.trace.Marks {
		if m.Event >= from && m.Event <= to && (m.Event > from || !m.End) {
			m.Event += to - from
			t.trace.Marks = append(t.trace.Marks, m)
		}
	}
	return true
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
