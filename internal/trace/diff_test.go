package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDiff(t *testing.T) {
	// The tables differ: in the second trace the stacks have other numbers.
	a := parseScript(t, "alloc x 8 forward\nalloc y 100 loop\nalloc z 5 batch")
	b := parseScript(t, "alloc y 20 loop\nalloc x 8 forward\nalloc x2 8 forward\nalloc z 5 batch\nalloc new 30 state")
	live := func(tr *Trace) []Lifetime { return Live(tr.Lifetimes(), len(tr.Events)-1) }

	type row struct {
		line          int
		before, after Held
	}
	var got []row
	for _, c := range Diff(a.Tables, live(a), b.Tables, live(b)) {
		got = append(got, row{c.Frames[0].Line, c.Before, c.After})
	}
	want := []row{
		{29, Held{100, 1}, Held{20, 1}},
		{178, Held{}, Held{30, 1}},
		{134, Held{8, 1}, Held{16, 2}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if same := Diff(a.Tables, live(a), a.Tables, live(a)); len(same) != 0 {
		t.Errorf("a trace differs from itself: %+v", same)
	}
}
