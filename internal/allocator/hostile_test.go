package allocator

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"memorymark/internal/testmachine"
	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
)

// Recordings that no program makes, but a file can hold: 100,000 entries of one
// kind. Each must be replayed in time that grows with its length, not with the
// square of it, and in the memory of an ordinary one.
func TestHostileRecordings(t *testing.T) {
	const n = 100_000
	for _, shape := range tracetest.Hostile {
		t.Run(shape.Name, func(t *testing.T) {
			eighth := min(replayTime(t, shape.Make(n/8)), replayTime(t, shape.Make(n/8)))
			tr := shape.Make(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			took := replayTime(t, tr)
			runtime.ReadMemStats(&after)
			// Linear is 8 times as long, quadratic 64 times; the rest is a margin for a collection of garbage.
			if took > 24*eighth+time.Second {
				t.Errorf("it took %v, an eighth of it %v", took, eighth)
			}
			if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 256<<20 {
				t.Errorf("%d MiB were allocated", bytes>>20)
			}
		})
	}
}

func replayTime(t *testing.T, tr *trace.Trace) time.Duration {
	t.Helper()
	start := testmachine.ProcessorTime(t)
	if _, err := NewReplay(tr, 0, Levels{}); err != nil {
		t.Log(err) // some are not whole; that must be found out quickly, too
	}
	return testmachine.ProcessorTime(t) - start
}

// TestTooMuchWork gives up where PyTorch itself would take long: expandable
// segments with thousands of gaps, all of which each request looks through.
func TestTooMuchWork(t *testing.T) {
	tr := tracetest.SmallGaps(400_000)
	r, err := NewReplay(tr, 0, Levels{})
	if err != nil {
		t.Fatal(err)
	}
	settings := tr.Settings
	settings.ExpandableSegments = true
	if out := r.WhatIf(WhatIf{Settings: &settings}); !errors.Is(out.Stopped, errTooMuchWork) || out.Fits() {
		t.Errorf("it was stopped by %v", out.Stopped)
	}
}
