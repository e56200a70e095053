package trace

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLifetimes(t *testing.T) {
	tr := parseScript(t, `
		before w 400
		alloc a 100 forward
		alloc b 50 forward
		request a engine
		complete a engine
		request b engine`)
	want := []Lifetime{
		{ID: 0, Size: 400, Alloc: -1, Freed: 5, Gone: 5},
		{ID: 1, Size: 100, Alloc: 0, Freed: 2, Gone: 3, Stack: 1},
		{ID: 2, Size: 50, Alloc: 1, Freed: 4, Gone: 5, Stack: 1},
	}
	if diff := cmp.Diff(want, tr.Lifetimes()); diff != "" {
		t.Errorf("lifetimes (-want +got):\n%s", diff)
	}
}

// A recording that begins in mid-free holds only the second half of it.
func TestLifetimesOfHalfAFree(t *testing.T) {
	tr := New(0, NewTables())
	tr.Events = []Event{{Action: FreeCompleted, Addr: 1, Size: 7}}
	tr.Link()
	want := []Lifetime{{ID: 0, Size: 7, Alloc: -1, Freed: 0, Gone: 0}}
	if diff := cmp.Diff(want, tr.Lifetimes()); diff != "" {
		t.Errorf("lifetimes (-want +got):\n%s", diff)
	}
}

func TestPeak(t *testing.T) {
	tests := []struct {
		name, script string
		want         Level
	}{
		{"empty", "", Level{Event: -1}},
		{"only before", "before w 400", Level{-1, 400, 1}},
		{"falls", "before w 400\nfree w\nalloc a 400", Level{-1, 400, 1}},
		{"first of equals", "alloc a 8\nfree a\nalloc b 8", Level{0, 8, 1}},
		{"a requested free still holds", "alloc a 8\nrequest a\nalloc b 8\ncomplete a", Level{2, 16, 2}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tr := parseScript(t, test.script)
			peak := tr.Peak()
			if peak != test.want {
				t.Errorf("peak = %+v, want %+v", peak, test.want)
			}
			if at := At(tr.Lifetimes(), peak.Event); at != peak {
				t.Errorf("what is live there = %+v, want %+v", at, peak)
			}
		})
	}
}

func TestGroupBy(t *testing.T) {
	tr := parseScript(t, `
		alloc a 8 forward
		alloc b 100 loop
		alloc c 8 forward
		alloc d 16 engine
		free b loop`)
	live := Live(tr.Lifetimes(), len(tr.Events)-1)
	bySite := []Group[Site]{{Site{Stack: 1}, 16, 2}, {Site{}, 16, 1}}
	if diff := cmp.Diff(bySite, GroupBy(live, BySite)); diff != "" {
		t.Errorf("by site (-want +got):\n%s", diff)
	}
	bySize := []Group[int64]{{8, 16, 2}, {16, 16, 1}}
	if diff := cmp.Diff(bySize, GroupBy(live, BySize)); diff != "" {
		t.Errorf("by size (-want +got):\n%s", diff)
	}
}
