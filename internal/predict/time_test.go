package predict

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"memorymark/internal/gpu"
	"memorymark/internal/workload"
)

// TestStepSeconds compares estimated with timed steps.
func TestStepSeconds(t *testing.T) {
	card, err := gpu.Find("h200")
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(truthDir + "/throughput.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var errors []float64
	for lines.Scan() {
		var c struct {
			ID       string
			Workload json.RawMessage
			Measured struct {
				StepMS float64 `json:"step_ms"`
			}
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		w, err := workload.Parse(c.Workload)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Simulate(w, card)
		if err != nil {
			t.Fatal(err)
		}
		errors = append(errors, math.Abs(1e3*s.StepSeconds()/c.Measured.StepMS-1))
	}
	slices.Sort(errors)
	median, p95 := errors[len(errors)/2], errors[len(errors)*95/100]
	t.Logf("%d steps: median error %.1f %%, 95 %% within %.1f %%, worst %.1f %%",
		len(errors), 100*median, 100*p95, 100*errors[len(errors)-1])
	if len(errors) != 78 || median > 0.08 || p95 > 0.3 {
		t.Error("it was better")
	}
}
