package trace

import "testing"

// FuzzAnalysis feeds the analysis recordings that no program would make: its
// results must add up all the same. Two bytes are an event.
func FuzzAnalysis(f *testing.F) {
	f.Add([]byte{1, 0, 1, 1, 2, 0, 3, 0})
	f.Add([]byte{3, 7, 9, 0, 1, 0, 1, 0, 2, 0, 2, 0})
	f.Add([]byte{1, 0, 10, 0, 1, 1, 9, 0, 2, 1, 3, 1, 11, 0})
	f.Fuzz(func(t *testing.T, program []byte) {
		tr := randomTrace(t, program)
		lifetimes := tr.Lifetimes()
		if len(lifetimes) != tr.Allocations() {
			t.Fatalf("%d lifetimes of %d allocations", len(lifetimes), tr.Allocations())
		}
		tr.Classify(lifetimes)
		peak := tr.Peak()
		if at := At(lifetimes, peak.Event); at != peak && tr.Lost == 0 {
			t.Errorf("peak %+v, but what is live there is %+v", peak, at)
		}
		live := Live(lifetimes, peak.Event)
		var bytes int64
		for _, g := range GroupBy(live, BySite) {
			bytes += g.Bytes
		}
		if total := At(live, peak.Event).Bytes; bytes != total {
			t.Errorf("groups hold %d bytes of %d", bytes, total)
		}
		if changes := Diff(tr.Tables, live, tr.Tables, live); len(changes) > 0 {
			t.Errorf("a trace differs from itself: %+v", changes)
		}
	})
}

// randomTrace makes a trace of bytes: an action, or a mark for 10 and 11, and
// the address or stack it is about.
func randomTrace(t *testing.T, program []byte) *Trace {
	p := scriptParser{t: t, trace: New(0, NewTables())}
	names := []string{"init", "forward", "again", "grads", "state", "zero", "loop"}
	for i := 0; i+1 < len(program); i += 2 {
		a, what := Action(program[i]%12), program[i+1]
		switch {
		case a >= 10:
			p.trace.Marks = append(p.trace.Marks, Mark{
				Name: []string{"Optimizer.step#x", "Optimizer.zero_grad#x"}[what%2], Event: len(p.trace.Events), End: a == 11,
			})
		case a > 0:
			e := Event{Action: a, Addr: uint64(what%8+1) << 10, Size: int64(what)}
			if s := int(what / 8); s < len(names) {
				e.Stack = p.stack(names[s])
			}
			p.trace.Events = append(p.trace.Events, e)
		}
	}
	p.trace.Link()
	return p.trace
}
