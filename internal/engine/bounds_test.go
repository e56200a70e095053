package engine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/evidence"
	"memorymark/internal/testmachine"
)

// onCPU measures with something that speaks as the prober does on a
// CPU, where a sample takes that many seconds.
func onCPU(t *testing.T, secondsPerSample float64) *analysis.Answer {
	t.Helper()
	script, err := filepath.Abs("testdata/cpu.py")
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(t.TempDir(), "python")
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' '%s' %g\n", testmachine.Python(t), script, secondsPerSample)
	if err := os.WriteFile(python, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	r := engine.NewRunner(engine.RunnerOptions{Python: python, Device: "cpu", Timeout: 5 * time.Minute})
	defer r.Close()
	a, err := r.Answer(t.Context(), evidence.Measured, requestOf(t, `{"model": "lm-small"}`), engine.Measurement{NoTiming: true})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func confirmed(a *analysis.Answer) (batches []int64) {
	for _, p := range a.Probes {
		if p.Purpose == "confirm" {
			batches = append(batches, p.Batch)
		}
	}
	return batches
}

// A line through small batches that is far off costs few probes, and none that
// is much larger than those that went well. What may be held is half of what
// is free.
func TestMisleadingLine(t *testing.T) {
	a := onCPU(t, 1e-6)
	// 16 GiB = 1 GiB + batch × 1 KiB + (batch − 64) × 1 MiB.
	if a.OptimalBatch != 15408 || a.Bounded || a.Limit != 16<<30 {
		t.Errorf("batch %d within %d bytes", a.OptimalBatch, a.Limit)
	}
	batches := confirmed(a)
	if len(batches) > 8 {
		t.Errorf("tried %v", batches)
	}
	largest := int64(32)
	for _, p := range a.Probes {
		if p.Batch > 16*largest {
			t.Errorf("tried batch %d after %d", p.Batch, largest)
		}
		if p.Success {
			largest = max(largest, p.Batch)
		}
	}
	if !noted(a, "of the machine's memory 32.00 GiB were free, and live tensors may take 16.00 GiB") {
		t.Errorf("%+v", a.Notes)
	}
}

// A batch whose steps would outlast a probe is not tried.
func TestTooLong(t *testing.T) {
	a := onCPU(t, 0.125)
	// Three steps in half of five minutes are 400 samples.
	if a.OptimalBatch != 400 || !a.Bounded {
		t.Errorf("batch %d, bounded %v; tried %v", a.OptimalBatch, a.Bounded, confirmed(a))
	}
	if !noted(a, "batch 401 was not tried: 3 steps would take about 150 s, and the timeout of a probe is 5m0s") {
		t.Errorf("%+v", a.Notes)
	}
}

func noted(a *analysis.Answer, text string) bool {
	for _, n := range a.Notes {
		if n.About == "limit" && strings.Contains(n.Text, text) {
			return true
		}
	}
	return false
}
