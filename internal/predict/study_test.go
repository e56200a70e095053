package predict

import (
	"encoding/json"
	"fmt"
	"testing"

	"memorymark/internal/workload/workloadtest"
)

// studied predicts the cells of the memory study, each in its third step.
// They were measured after the model and the time model were written. What
// else was measured of them is compared in package study.
func studied(t *testing.T) (f family, times lineErrors) {
	t.Helper()
	for _, c := range readLines[struct {
		Workload json.RawMessage
		Peak     struct{ Allocated, Reserved int64 }
		Seconds  float64 `json:"step_seconds"`
	}](t, "study/results.jsonl") {
		w := workloadtest.Parse(t, c.Workload)
		sim := mustRun(t, w, workloadtest.Card(t, "h200"))
		id := fmt.Sprintf("%s_s%d_%s_%s", w.Model, w.Sequence, w.Precision, w.Phase)
		third := sim.Steps()[2]
		f.lines++
		f.allocated = append(f.allocated, lineError{id: id, share: worse(0, int64(third.PeakAllocated), c.Peak.Allocated), parameters: sim.Parameters()})
		f.reserved = append(f.reserved, lineError{id: id, share: worse(0, int64(third.PeakReserved), c.Peak.Reserved), parameters: sim.Parameters()})
		times = append(times, sim.timed(id, c.Seconds))
	}
	return f, times
}

func TestStudied(t *testing.T) {
	f, times := studied(t)
	for _, e := range []lineErrors{f.allocated, f.reserved} {
		if sum := e.sum(); sum.Exact != 31 {
			t.Errorf("%+v, all 31 were exact; farthest are %s", sum, e.farthest())
		}
	}
	if e := times.sum(); e.Median > 0.04 {
		t.Errorf("times are %+v, they were better", e)
	}
}
