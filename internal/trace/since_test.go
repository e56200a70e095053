package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSince(t *testing.T) {
	tr := parseScript(t, `
		before w 400
		alloc a 100 forward
		alloc b 50 forward
		request a engine
		complete a engine
		alloc c 25 forward
		request b engine
		complete b engine`)
	for i := range tr.Events {
		if e := &tr.Events[i]; e.Action == Alloc {
			e.Addr, e.For = uint64(1<<50+i), Activation
		}
	}
	tr.Marks = []Mark{{Name: "x", Event: 0}, {Name: "x", Event: 4, End: true}, {Name: "y", Event: 4}, {Name: "y", Event: 7, End: true}}
	cut := tr.Since(4)
	if err := cut.CheckValid(); err != nil {
		t.Fatal(err)
	}
	want := []Lifetime{
		{ID: 0, Size: 400, Alloc: -1, Freed: 3, Gone: 3},
		{ID: 1, Size: 50, Alloc: -1, Freed: 1, Gone: 2, Stack: 1, For: Activation},
		{ID: 2, Size: 25, Alloc: 0, Freed: 3, Gone: 3, Stack: 1, For: Activation},
	}
	if diff := cmp.Diff(want, cut.Lifetimes()); diff != "" {
		t.Errorf("lifetimes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Mark{{Name: "y", Event: 0}, {Name: "y", Event: 3, End: true}}, cut.Marks); diff != "" {
		t.Errorf("marks (-want +got):\n%s", diff)
	}
	if err := tr.CheckValid(); err != nil {
		t.Errorf("the trace itself has changed: %v", err)
	}
}

// Nothing is lost by beginning at the beginning.
func TestSinceTheBeginning(t *testing.T) {
	tr := parseScript(t, "before w 400\nalloc a 100\nrequest a\nalloc b 5")
	if diff := cmp.Diff(tr.Lifetimes(), tr.Since(0).Lifetimes()); diff != "" {
		t.Errorf("lifetimes (-want +got):\n%s", diff)
	}
}
