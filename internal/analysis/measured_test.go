package analysis

import (
	"testing"

	"memorymark/internal/measure"
	"memorymark/internal/workload"
)

// TestConfirmedSurvives holds that a batch which survived a process of its own
// trains, whatever happened to it where others ran before.
func TestConfirmedSurvives(t *testing.T) {
	m := &Measured{Request: Request{Workload: workload.Default()}}
	add := func(batch int64, purpose string, success bool) {
		m.Probes = append(m.Probes, Probe{Outcome: measure.Outcome{Batch: batch}, Purpose: purpose, Success: success})
	}
	add(8, Guiding, true)
	add(8, Confirming, false)
	add(4, Confirming, true)
	add(4, Timing, false)
	add(2, Timing, false)
	add(2, Timing, true)
	results := m.results()
	for batch, want := range map[int64]bool{8: false, 4: true, 2: true} {
		if results[batch].Success != want {
			t.Errorf("batch %d trains: %v", batch, !want)
		}
	}
}
