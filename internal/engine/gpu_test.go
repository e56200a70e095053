package engine_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"memorymark/internal/analysis"
	"memorymark/internal/engine"
	"memorymark/internal/measure"
	"memorymark/internal/study"
	"memorymark/internal/workload/workloadtest"
)

var (
	onGPU  = flag.Bool("gpu", false, "run real steps on this machine's GPU (make test-gpu)")
	record = flag.String("record", "", "write the transcripts of the limits to this folder")
)

// gpuSession opens a session on this machine's GPU, with the Python that
// MemoryMark finds.
func gpuSession(t *testing.T, o measure.SessionOptions) *measure.Session {
	t.Helper()
	if !*onGPU {
		t.Skip("NOT TESTED: it needs a CUDA GPU; make test-gpu runs it on one")
	}
	var err error
	if o.Python, err = measure.FindPython("", os.Getenv); err != nil {
		t.Fatal(err)
	}
	o.Device = "cuda"
	s, err := measure.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestGPULimits finds the largest batch under limits whose truth is known, and
// compares.
func TestGPULimits(t *testing.T) {
	for _, c := range limitCases(t) {
		t.Run(c.file(), func(t *testing.T) {
			w := c.workload(t)
			card := workloadtest.Card(t, "h200")
			r := analysis.Request{Workload: w, Card: card}
			s := gpuSession(t, measure.SessionOptions{Workload: w, Spares: engine.Spares(r), Transcript: transcript(t, c.file())})
			a, err := engine.Measure(t.Context(), r, engine.Measurement{Session: s, Ahead: engine.LookAhead(r), NoTiming: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("batch %d in %d probes and %.1f s", a.OptimalBatch, len(a.Probes)-1, a.Seconds.Search)
			checkMeasured(t, c, a)
		})
	}
}

func transcript(t *testing.T, name string) io.Writer {
	t.Helper()
	if *record == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(*record, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestGPUPredictions records whole processes, a family each, and compares
// every allocation and free with the predicted ones.
func TestGPUPredictions(t *testing.T) {
	s := gpuSession(t, measure.SessionOptions{})
	for _, text := range []string{
		`{"model": "bert", "batch": 4}`,
		`{"model": "roberta", "batch": 2, "precision": "amp-bf16", "attention_mask": "padded"}`,
		`{"model": "distilbert", "batch": 4, "optimizer": "sgd-momentum", "clip_grad_norm": true}`,
		`{"model": "gpt2", "batch": 4, "accumulate": 2}`,
		`{"model": "qwen2-0.5b", "batch": 2, "precision": "bf16"}`,
		`{"model": "vit", "batch": 4, "checkpointing": true}`,
		`{"model": "resnet", "batch": 4}`,
		`{"model": "t5-small", "batch": 4, "attention": "eager"}`,
		`{"model": "lm-small", "batch": 4, "sequence": 256, "precision": "amp-fp16"}`,
	} {
		w := workloadtest.Parse(t, text)
		c, err := engine.ValidatePrediction(t.Context(), w, engine.Measurement{Session: s}, "")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		t.Logf("%s: %d of %d requests are as predicted", text, c.Comparison.Equal, len(c.Comparison.Requests[1]))
		if c.Verdict != engine.Pass {
			t.Errorf("%s: %s, after %d requests", text, c.Why, c.Comparison.Before)
		}
	}
}

// TestGPULanguageModel holds the plain language model, which is written twice,
// to itself: peaks of every phase within 1 %, and the same largest allocations.
func TestGPULanguageModel(t *testing.T) {
	s := gpuSession(t, measure.SessionOptions{})
	for _, model := range []string{"lm-small", "lm-medium", "lm-large", "lm-xl"} {
		w := workloadtest.Parse(t, fmt.Sprintf(`{"model": %q, "batch": 4}`, model))
		card := workloadtest.Card(t, s.Device.Name)
		cell := study.Cell{Workload: w, Card: card, Warmup: 2, Steps: 1}
		compareProfiles(t, cell, &engine.Profiler{Session: s})
	}
}

func compareProfiles(t *testing.T, cell study.Cell, measurer study.Profiler) {
	t.Helper()
	var results [2]*study.Result
	for i, p := range []study.Profiler{study.Predictor{}, measurer} {
		profile, err := p.Profile(t.Context(), cell)
		if err != nil {
			t.Error(err)
			return
		}
		results[i] = study.NewResult(cell, p.Engine(), profile)
	}
	predicted, measured := results[0], results[1]
	t.Logf("%s: predicted %v, measured %v", cell.Workload.Name(), predicted.Peak.Allocated, measured.Peak.Allocated)
	for i, p := range measured.Phases {
		if i >= len(predicted.Phases) || math.Abs(float64(predicted.Phases[i].Allocated)/float64(p.Allocated)-1) > 0.01 {
			t.Errorf("%s: %s took %v, predicted were %v", cell.Workload.Name(), p.Name, p.Allocated, predicted.Phases)
		}
	}
	for i, a := range measured.Largest {
		if i >= len(predicted.Largest) || predicted.Largest[i].Bytes != a.Bytes || predicted.Largest[i].Count != a.Count {
			t.Errorf("%s: the largest allocations are\n%+v\npredicted were\n%+v", cell.Workload.Name(), measured.Largest, predicted.Largest)
			break
		}
	}
}

// TestGPUSpeed answers a whole question, with speeds.
func TestGPUSpeed(t *testing.T) {
	w := workloadtest.Parse(t, `{"model": "gpt2", "limit_gib": 22.1}`)
	s := gpuSession(t, measure.SessionOptions{Workload: w, Transcript: transcript(t, "gpt2-timed.jsonl")})
	a, err := engine.Measure(t.Context(), analysis.Request{Workload: w}, engine.Measurement{Session: s})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range a.Results {
		t.Logf("batch %d: %.1f samples/s, %.2f GiB", r.Batch, r.SamplesPerSecond, r.MemoryGB)
	}
	if a.Recommended == 0 || a.Recommended > a.OptimalBatch || a.Speedup < 1 {
		t.Errorf("recommended %d of %d, %.2f × as fast", a.Recommended, a.OptimalBatch, a.Speedup)
	}
}

// TestGPUCancel holds that a cancelled probe gives its memory back.
func TestGPUCancel(t *testing.T) {
	w := workloadtest.Parse(t, `{"model": "bert"}`)
	s := gpuSession(t, measure.SessionOptions{Workload: w})
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.Probe(ctx, measure.Probe{Workload: w, Batches: []int64{256}, Steps: 1000}, func(measure.StepProgress) { cancel() })
	if err == nil {
		t.Error("a thousand steps ended early")
	}
	began := time.Now()
	r, err := s.Probe(t.Context(), measure.Probe{Workload: w, Batches: []int64{1}, Steps: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if used := r.Total - r.Free; used > 4<<30 {
		t.Errorf("%d bytes are in use %v after the probe was cancelled", used, time.Since(began))
	}
}
