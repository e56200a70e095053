package report

import (
	"math/rand/v2"
	"testing"

	"memorymark/internal/recording"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
)

// TestHostileAnswers computes every answer about long recordings that are made
// to be slow.
func TestHostileAnswers(t *testing.T) {
	for _, shape := range tracetest.Hostile {
		t.Run(shape.Name, func(t *testing.T) {
			tr := shape.Make(20_000)
			defer watch(t)()
			askAll(t, tr)
		})
	}
}

// TestHostileComparison compares recordings that have nothing in common, little,
// and the same in another order.
func TestHostileComparison(t *testing.T) {
	const n = 20_000
	random := rand.New(rand.NewPCG(1, 2))
	sides := map[string]func(i int) int64{
		"of one size":   func(int) int64 { return 512 },
		"of few sizes":  func(i int) int64 { return int64(i%7+1) * 512 },
		"of all sizes":  func(i int) int64 { return int64(i+1) * 512 },
		"the other way": func(i int) int64 { return int64(n-i) * 512 },
		"at random":     func(int) int64 { return random.Int64N(n) * 512 },
	}
	for a, first := range sides {
		for b, second := range sides {
			t.Run(a+", "+b, func(t *testing.T) {
				x, y := allocations(n, first), allocations(n, second)
				defer watch(t)()
				show(t, nil, func() writer {
					return Compare{recording.NewCompare(recording.CompareInput{Trace: x}, recording.CompareInput{Trace: y}, trace.Compare(x, y), 0, 3), -1}
				})
			})
		}
	}
}

func allocations(n int, size func(i int) int64) *trace.Trace {
	tr := trace.New(0, trace.NewTables())
	for i := range n {
		tr.Events = append(tr.Events, trace.Event{Action: trace.Alloc, Addr: uint64(i+1) << 30, Size: size(i)})
	}
	tr.Link()
	return tr
}
