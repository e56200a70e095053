package torch

import "memorymark/internal/trace"

// Repeat asks for the same again as the events from one to another did, as a
// step does that begins and ends in the same state. It reports false, and does
// nothing, if they freed something older or left something behind: then the
// states differ.
func (t *Torch) Repeat(from, to int) bool {
	events := t.trace.Events[from:to]
	first, live := trace.ID(-1), 0
	for i := range events {
		switch e := &events[i]; e.Action {
		case trace.Alloc:
			if first < 0 {
				first = e.ID
			}
			live++
		case trace.FreeCompleted:
			if first < 0 || e.ID < first {
				return false
			}
			live--
		default:
		}
	}
	if live != 0 {
		return false
	}
	shift := t.next - first
	for _, e := range events {
		if e.ID >= 0 {
			e.ID += shift
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
