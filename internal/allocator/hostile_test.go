package allocator

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"memorymark/internal/trace/tracetest"
)

// Recordings that no program makes, but a file can hold. Each has 100,000
// entries of one kind and must be replayed in the time and the memory of an
// ordinary one of that length, about 20 ms and 40 MB.
func TestHostileRecordings(t *testing.T) {
	const n = 100_000
	for _, shape := range tracetest.Hostile {
		t.Run(shape.Name, func(t *testing.T) {
			tr := shape.Make(n)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			if _, err := NewReplay(tr, 0); err != nil {
				t.Log(err) // some are not whole; that must be found out quickly, too
			}
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if took > 2*time.Second {
				t.Errorf("it took %v", took)
			}
			if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 256<<20 {
				t.Errorf("%d MiB were allocated", bytes>>20)
			}
		})
	}
}

// TestTooMuchWork gives up where PyTorch itself would take long: expandable
// segments with thousands of gaps, all of which each request looks through.
func TestTooMuchWork(t *testing.T) {
	tr := tracetest.SmallGaps(400_000)
	r, err := NewReplay(tr, 0)
	if err != nil {
		t.Fatal(err)
	}
	settings := tr.Settings
	settings.ExpandableSegments = true
	start := time.Now()
	out := r.WhatIf(Change{Settings: &settings})
	if took := time.Since(start); !errors.Is(out.Stopped, ErrTooMuchWork) || out.Fits() || took > 4*time.Second {
		t.Errorf("%v after %v", out.Stopped, took)
	}
}
