package report

import (
	"slices"
	"strings"
	"testing"

	"memorymark/internal/analysis"
	"memorymark/internal/evidence"
	"memorymark/internal/plan"
)

// Speeds of equal batches are not compared, and equal speeds have no factor.
func TestSpeed(t *testing.T) {
	for _, test := range []struct {
		optimal, current int64
		speedup          float64
		want             string
	}{
		{266, 16, 1.43, "Speed  batch 266 is 1.43 × as fast as batch 16 (predicted by a time model)\n"},
		{9, 8, 1, "Speed  batch 9 is as fast as batch 8 (predicted by a time model)\n"},
		{9, 8, 0.98, "Speed  batch 9 is 0.98 × as fast as batch 8 (predicted by a time model)\n"},
		{8, 8, 1, ""},
	} {
		var b strings.Builder
		a := &analysis.Answer{OptimalBatch: test.optimal, CurrentBatch: test.current, CurrentFits: true, Speedup: test.speedup, SpeedupBasis: evidence.Predicted}
		Analysis{Answer: a}.writeSpeed(&b, 100)
		if got := plainText(b.String()); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// The heading counts the changes of all rows.
func TestFitCountsChanges(t *testing.T) {
	for want, counts := range map[string][]int{"1 change": {1}, "2 changes": {2, 2}, "2 to 3 changes": {3, 2, 3}} {
		f := FitText{&plan.Fit{}}
		for _, n := range counts {
			o := &plan.Option{}
			o.Changes = slices.Grow(o.Changes, n)[:n]
			f.Options = append(f.Options, o)
		}
		if got := f.countChanges(); got != want {
			t.Errorf("%v: %q, want %q", counts, got, want)
		}
	}
}
