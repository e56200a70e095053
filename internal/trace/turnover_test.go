package trace

import (
	"slices"
	"testing"
)

// TestTurnover: what a stretch frees that was there before, and what it leaves.
func TestTurnover(t *testing.T) {
	alloc := func(id ID) Event { return Event{Action: Alloc, ID: id} }
	free := func(id ID) Event { return Event{Action: FreeCompleted, ID: id} }
	for name, c := range map[string]struct {
		events []Event
		want   Turnover
	}{
		"nothing":          {nil, Turnover{First: None}},
		"only frees":       {[]Event{free(4), free(1)}, Turnover{First: None, Older: []ID{1, 4}}},
		"closed":           {[]Event{alloc(7), alloc(8), free(8), free(7)}, Turnover{First: 7}},
		"replaces, by age": {[]Event{alloc(7), free(5), alloc(8), free(2), alloc(9), free(8)}, Turnover{First: 7, Older: []ID{2, 5}, Left: []ID{7, 9}}},
	} {
		got := TurnoverOf(c.events)
		if got.First != c.want.First || !slices.Equal(got.Older, c.want.Older) || !slices.Equal(got.Left, c.want.Left) {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
}
