package analysis

import (
	"testing"

	"memorymark/internal/measure"
	"memorymark/internal/workload"
)

// TestConfirmedSurvives holds that a batch which survived a process of its own
// trains, whatever happened to it where others ran before.
func TestConfirmedSurvives(t *testing.T) {
	b := &bench{Measurement: Measurement{Session: &measure.Session{}}, Request: Request{Workload: workload.Default()}}
	add := func(batch int64, purpose string, success bool) {
		b.probes = append(b.probes, Probe{Outcome: measure.Outcome{Batch: batch}, Purpose: purpose, Success: success})
	}
	add(8, guiding, true)
	add(8, confirming, false)
	add(4, confirming, true)
	add(4, timing, false)
	add(2, timing, false)
	add(2, timing, true)
	results := b.results()
	for batch, want := range map[int64]bool{8: false, 4: true, 2: true} {
		if results[batch].Success != want {
			t.Errorf("batch %d trains: %v", batch, !want)
		}
	}
}
