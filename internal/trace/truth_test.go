package trace_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memorymark/internal/trace"
	"memorymark/internal/trace/tracetest"
)

const truth = "../../testdata/truth"

// truthCase is a line of recorded.jsonl.
type truthCase struct {
	ID       string `json:"id"`
	Workload struct {
		Precision string `json:"precision"`
		Optimizer string `json:"optimizer"`
		Impl      string `json:"optimizer_impl"`
		Phase     string `json:"phase"`
	} `json:"workload"`
	Measured struct {
		Parameters     int64 `json:"parameters"`
		ModelAllocated int64 `json:"model_allocated"`
		InputAllocated int64 `json:"input_allocated"`
	} `json:"measured"`
}

// What Classify infers from recordings of whole processes must agree with what
// the allocator's statistics said while they ran (the bytes of the model and of
// the batch) and with what training is: a gradient for each weight, and as
// much again for each state of the optimizer.
func TestClassifyAgreesWithTruth(t *testing.T) {
	for _, c := range truthCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			checkTruth(t, c)
		})
	}
}

func checkTruth(t *testing.T, c truthCase) {
	tr := tracetest.Trace(t, filepath.Join(truth, "recorded", c.ID+".pickle.xz"))
	lifetimes := tr.Lifetimes()
	tr.Classify(lifetimes)
	moment := endOfBackward(tr, lifetimes)
	got := make(map[trace.Category]int64)
	for _, g := range trace.GroupBy(trace.Live(lifetimes, moment), trace.ByCategory) {
		got[g.Key] = g.Bytes
	}
	t.Logf("at event %d: %v", moment, got)

	check := func(what string, got, want int64) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d bytes, want %d", what, got, want)
		}
	}
	model, input := blockBytes(tr, lifetimes, trace.Parameter), blockBytes(tr, lifetimes, trace.Input)
	check("model, with the allocator's rounding", model, c.Measured.ModelAllocated)
	check("input, with the allocator's rounding", input, c.Measured.InputAllocated)
	weights := c.Measured.Parameters * 4
	if c.Workload.Precision == "bf16" {
		weights /= 2
	}
	if c.Workload.Phase == "train" || c.Workload.Phase == "backward" {
		check("gradients", got[trace.Gradient], weights)
	}
	state := weights * map[string]int64{"adam": 2, "adamw": 2, "sgd-momentum": 1}[c.Workload.Optimizer]
	if c.Workload.Impl == "fused" {
		state += 4 * gradientCount(lifetimes, moment) // the fused one counts its steps on the device
	}
	check("optimizer state", got[trace.OptimizerState], state)
}

// blockBytes sums the blocks that a category holds at the end. A block can be
// larger than what was asked for: the allocator rounds, and leaves the last
// megabyte of a large block on it.
func blockBytes(tr *trace.Trace, lifetimes []trace.Lifetime, c trace.Category) int64 {
	var sum int64
	for _, s := range tr.Final {
		for _, b := range s.Blocks {
			if b.ID != trace.None && lifetimes[b.ID].For == c {
				sum += b.Size
			}
		}
	}
	return sum
}

func gradientCount(lifetimes []trace.Lifetime, moment int) int64 {
	var n int64
	for _, l := range trace.Live(lifetimes, moment) {
		if l.For == trace.Gradient {
			n++
		}
	}
	return n
}

// endOfBackward returns the moment before the last optimizer step, when all
// gradients exist.
func endOfBackward(tr *trace.Trace, lifetimes []trace.Lifetime) int {
	for i := len(tr.Marks) - 1; i >= 0; i-- {
		if m := tr.Marks[i]; !m.End && strings.HasPrefix(m.Name, "Optimizer.step#") {
			return m.Event - 1
		}
	}
	last := len(tr.Events) - 1
	for i := range lifetimes {
		if lifetimes[i].For == trace.Gradient {
			last = max(lifetimes[i].Alloc, 0)
		}
	}
	return last
}

func truthCases(t *testing.T) []truthCase {
	t.Helper()
	f, err := os.Open(filepath.Join(truth, "recorded.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var cases []truthCase
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c truthCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, c)
	}
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	return cases
}
