package analysis

import (
	"encoding/json"
	"testing"

	"memorymark/internal/gpu"
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

// TestFailedUnknown holds that an answer says nothing of the memory of a batch whose
// run failed before its peak was known.
func TestFailedUnknown(t *testing.T) {
	card, err := gpu.Find("a10")
	if err != nil {
		t.Fatal(err)
	}
	m := &Measured{Request: Request{Workload: workload.Default(), Card: card}, Limit: 20 << 30}
	m.Probes = []Probe{{Outcome: measure.Outcome{Batch: 64}, Purpose: Confirming}}
	data, err := json.Marshal(m.begin(0).Results[0])
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"batch_size":64,"success":false,"verdict":"does not fit"}`; string(data) != want {
		t.Errorf("the result is %s, want %s", data, want)
	}
}
