package predict

import (
	"fmt"
	"math"
	"testing"

	"memorymark/internal/steptime"
	"memorymark/internal/workload/workloadtest"
)

// The answer about a pipeline is that of the stage that needs the most, with what the
// others take; each takes what it takes alone.
func TestStages(t *testing.T) {
	const text = `{"model": "smollm2-135m", "batch": 8, "precision": "bf16", "parallel": {"kind": "pipeline", "stages": [%s], "schedule": "%s", "microbatches": 4}}`
	peaks := make(map[string][]Rank)
	for _, schedule := range []string{"1f1b", "gpipe"} {
		w := workloadtest.Parse(t, fmt.Sprintf(text, "20, 6, 4", schedule))
		p := mustPredict(t, w, workloadtest.Card(t, "h200"))
		if len(p.Ranks) != 3 {
			t.Fatalf("%s: ranks are %+v", schedule, p.Ranks)
		}
		peaks[schedule] = p.Ranks
		for i, r := range p.Ranks {
			alone, err := (&program{w: w, rank: int64(i)}).run(h200, steps, nil)
			if err != nil {
				t.Fatal(err)
			}
			s, err := NewBatches(w, workloadtest.Card(t, "h200"), nil).newProcess(alone, Limit(w, workloadtest.Card(t, "h200")))
			if err != nil {
				t.Fatal(err)
			}
			if r.PeakReserved != s.Peak().PeakReserved || r.Decides != (r.PeakReserved == p.PeakReserved()) || r.PeakReserved > p.PeakReserved() {
				t.Errorf("%s: rank %s is %+v, alone it reserves %v; the answer is %v", schedule, r.Ranks, r, s.Peak().PeakReserved, p.PeakReserved())
			}
		}
	}
	// All microbatches are under way in GPipe, one in the last stage of 1F1B.
	for i, r := range peaks["1f1b"] {
		if i > 0 && r.PeakAllocated >= peaks["gpipe"][i].PeakAllocated {
			t.Errorf("rank %d takes %v with 1F1B, %v with GPipe", i, r.PeakAllocated, peaks["gpipe"][i].PeakAllocated)
		}
	}
}

// A pipeline waits while it fills and drains: one microbatch for every other stage.
func TestBubble(t *testing.T) {
	for _, microbatches := range []int64{2, 8} {
		w := workloadtest.Parse(t, fmt.Sprintf(`{"model": "smollm2-135m", "batch": 8, "parallel": {"kind": "pipeline", "stages": [15, 15], "microbatches": %d}}`, microbatches))
		p := ran(t, w, h200, steps)
		timing := p.timing()
		forward, backward, _ := timing.busy(workloadtest.Card(t, "h200"))
		passes := steptime.Seconds(forward) + steptime.Seconds(backward)
		if got, want := timing.Seconds(workloadtest.Card(t, "h200"), w.Parallel, 1).Waiting, passes/float64(microbatches); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("%d microbatches: waits %g s, want %g", microbatches, got, want)
		}
	}
}
