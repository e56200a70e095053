package predict

import (
	"encoding/json"
	"math"
	"testing"

	"memorymark/internal/workload/workloadtest"
)

// timedSteps returns how far off the estimated time of each timed step of a file
// is, by architecture.
func timedSteps(t *testing.T, file string) map[string]lineErrors {
	t.Helper()
	out := make(map[string]lineErrors)
	for _, c := range readLines[struct {
		ID       string
		Workload json.RawMessage
		Measured struct {
			StepMS float64 `json:"step_ms"`
		}
	}](t, file) {
		w := workloadtest.Parse(t, c.Workload)
		s := mustRun(t, w, workloadtest.Card(t, "h200"))
		name := w.Config.Architecture
		out[name] = append(out[name], s.timed(c.ID, 1e-3*c.Measured.StepMS))
	}
	return out
}

// timed is how far off an estimated time is, and whether its range holds the one that
// was measured.
func timed(id string, estimated Seconds, measured float64) lineError {
	return lineError{id: id, share: estimated.Total()/measured - 1, held: estimated.Range.Holds(measured)}
}

func (s *Process) timed(id string, measured float64) lineError {
	out := timed(id, s.stepTime(), measured)
	out.parameters = s.Parameters()
	return out
}

// held is the share of times that their ranges hold.
func (e lineErrors) held() float64 {
	held := 0
	for _, x := range e {
		if x.held {
			held++
		}
	}
	return float64(held) / float64(len(e))
}

// TestStepSeconds compares estimated with timed steps.
func TestStepSeconds(t *testing.T) {
	var all lineErrors
	for _, e := range timedSteps(t, "throughput.jsonl") {
		all = append(all, e...)
	}
	e := all.sum()
	t.Logf("%d steps: median error %.1f %%, 95 %% within %.1f %%, worst %.1f %%",
		e.Cases, 100*e.Median, 100*e.Percentile95, 100*e.Worst)
	if e.Cases != 78 || e.Median > 0.04 || e.Percentile95 > 0.2 {
		t.Error("it was better")
	}
}

// TestLargeSteps compares steps with large products in bf16, which no constant was
// fitted to: Llamas as wide as those of 1, 8 and 70 billion parameters.
func TestLargeSteps(t *testing.T) {
	e := largeSteps(t).sum()
	t.Logf("%d steps: median error %.1f %%, worst %.1f %%", e.Cases, 100*e.Median, 100*e.Worst)
	if e.Cases != 10 || e.Median > 0.03 || e.Worst > 0.09 {
		t.Error("it was better")
	}
}

func largeSteps(t *testing.T) lineErrors {
	t.Helper()
	return timedSteps(t, "throughput-large.jsonl")["LlamaForCausalLM"]
}

// A step takes no less than its samples take to load.
func TestFeed(t *testing.T) {
	for _, perSample := range []float64{1e-6, 1} {
		w := workloadtest.Parse(t, `{"model": "gpt2", "batch": 2, "accumulate": 3}`)
		p := mustPredict(t, w, workloadtest.Card(t, "h200"))
		alone, samples := p.StepSeconds, p.SamplesPerSecond*p.StepSeconds
		p.Feed(perSample)
		want := max(alone, 6*perSample)
		if math.Abs(p.StepSeconds-want) > 1e-9 || math.Abs(p.SamplesPerSecond*want-samples) > 1e-6 || p.StepRange.High < p.StepSeconds || p.Loader.WaitingSeconds != max(6*perSample-alone, 0) {
			t.Errorf("%g s a sample: %g s a step instead of %g s, %+v, range %+v", perSample, p.StepSeconds, alone, *p.Loader, *p.StepRange)
		}
	}
}
