package study

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"weak"

	"memorymark/internal/bytesize"
	"memorymark/internal/evidence"
	"memorymark/internal/snapshot"
	"memorymark/internal/trace"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

func profile(t *testing.T, c Cell) (*Profile, *Result) {
	t.Helper()
	p, err := Predictor{}.Profile(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return p, NewResult(c, evidence.Predicted, p)
}

// What each phase's peak is made of adds up to what the allocator's statistics
// say of it, whatever is profiled.
func TestPhasesAddUp(t *testing.T) {
	for name, data := range map[string]string{
		"training":      `{"model": "lm-small", "batch": 2, "config": {"num_layers": 3}}`,
		"forward":       `{"model": "lm-small", "batch": 2, "config": {"num_layers": 3}, "phase": "forward"}`,
		"inference":     `{"model": "lm-small", "batch": 2, "config": {"num_layers": 3}, "phase": "infer"}`,
		"mixed":         `{"model": "lm-small", "batch": 2, "config": {"num_layers": 3}, "precision": "amp-bf16"}`,
		"accumulation":  `{"model": "lm-small", "batch": 2, "config": {"num_layers": 3}, "accumulate": 2}`,
		"another model": `{"model": "resnet", "batch": 2}`,
	} {
		t.Run(name, func(t *testing.T) {
			p, r := profile(t, Cell{Workload: workloadtest.Parse(t, data), Card: workloadtest.Card(t, "h200"), Warmup: 5, Steps: 2})
			if err := p.Trace.CheckValid(); err != nil {
				t.Fatal(err)
			}
			if len(r.Phases) == 0 {
				t.Fatal("no phases")
			}
			for _, ph := range r.Phases {
				var sum bytesize.Bytes
				for _, m := range ph.Made {
					sum += m.Bytes
				}
				if sum != ph.Requested || ph.Requested > ph.Allocated || ph.Allocated > ph.Reserved {
					t.Errorf("%s: parts add up to %v, the peak is %+v", ph.Name, sum, ph.Peak)
				}
			}
			if peak := bytesize.Bytes(p.Trace.Peak().Bytes); peak != r.Peak.Requested {
				t.Errorf("the trace's peak is %v, the result's %v", peak, r.Peak.Requested)
			}
		})
	}
}

// What autograd holds at the end of a forward pass is called so, whether
// backward follows or not.
func TestForwardKeepsActivations(t *testing.T) {
	of := func(phase string) bytesize.Bytes {
		w := workloadtest.Parse(t, fmt.Sprintf(`{"model": "lm-small", "batch": 2, "phase": %q}`, phase))
		_, r := profile(t, Cell{Workload: w, Card: workloadtest.Card(t, "h200"), Warmup: 1, Steps: 1})
		return r.Phase(trace.ForwardMark).Of(trace.Activation)
	}
	training, forward := of("train"), of("forward")
	if training < 100*bytesize.MiB || forward < training || forward > training+training/10 {
		t.Errorf("forward holds %v of activations in training and %v alone", training, forward)
	}
	if inference := of("infer"); inference > training/10 {
		t.Errorf("inference holds %v of activations, training %v", inference, training)
	}
}

func TestLargest(t *testing.T) {
	w := workloadtest.Parse(t, `{"model": "lm-small", "batch": 4, "sequence": 512}`)
	_, r := profile(t, Cell{Workload: w, Card: workloadtest.Card(t, "h200"), Warmup: 2, Steps: 2})
	for i, a := range r.Largest {
		total := 0
		for _, o := range a.Origins {
			total += o.Count
		}
		if total != a.Count || a.Count == 0 || i > 0 && a.Bytes > r.Largest[i-1].Bytes {
			t.Errorf("%d: %+v", i, a)
		}
	}
	// The scores of 12 layers are 4 × 12 × 512 × 512 × 4 bytes each.
	scores := r.Largest[1]
	if first := r.Largest[0]; first.Bytes < scores.Bytes {
		t.Errorf("%+v comes before %+v", first, scores)
	}
	found := false
	for _, a := range r.Largest {
		if a.Category == "activation" && a.Bytes == 48*bytesize.MiB {
			found = a.Count == 12 && a.Origins[0].Place == "TransformerLM blocks.*.attention" && len(a.Origins) == 1
		}
	}
	if !found {
		t.Errorf("the attention weights of 12 layers are not among %+v", r.Largest)
	}
}

func TestOutOfMemory(t *testing.T) {
	c := Cell{Workload: workloadtest.Parse(t, `{"model": "lm-large", "batch": 4, "sequence": 512}`), Card: workloadtest.Card(t, "a10"), Warmup: 5, Steps: 1}
	p, r := profile(t, c)
	if r.Fits() || r.OutOfMemory.Needs <= r.OutOfMemory.Limit || r.OutOfMemory.Phase == "" || r.Peak == nil {
		t.Fatalf("a large model does fit an A10: %+v", r.OutOfMemory)
	}
	if p.Trace.Count(trace.OutOfMemory) != 1 {
		t.Error("the trace does not end in the failure")
	}
	f, err := WhatFits(c)
	if err != nil {
		t.Fatal(err)
	}
	for what, largest := range map[string]int64{"batch": f.Batch, "sequence": f.Context} {
		if largest < 1 {
			t.Fatalf("no %s fits: %+v", what, f)
		}
		for _, n := range []int64{largest, largest + 1} {
			at := c
			w := *c.Workload
			if at.Workload = &w; what == "batch" {
				w.Batch = n
			} else {
				w.Sequence = n
			}
			if _, r := profile(t, at); r.Fits() != (n == largest) {
				t.Errorf("%s %d fits: %v; the largest is said to be %d", what, n, r.Fits(), largest)
			}
		}
	}
	if len(f.Changes) == 0 {
		t.Error("no change is said to help")
	}
}

func TestTooSmallForAnything(t *testing.T) {
	f, err := WhatFits(Cell{Workload: workloadtest.Parse(t, `{"model": "lm-2.7b", "batch": 4}`), Card: workloadtest.Card(t, "a10")})
	if err != nil || f.Batch != 0 || f.Context != 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// A predicted profile is a snapshot that reads back as it was.
func TestProfileIsASnapshot(t *testing.T) {
	p, _ := profile(t, Cell{Workload: workloadtest.Parse(t, `{"model": "lm-small", "batch": 1, "config": {"num_layers": 1}}`), Card: workloadtest.Card(t, "h200"), Warmup: 1, Steps: 2})
	var b bytes.Buffer
	if err := snapshot.Write(&b, &snapshot.Snapshot{Devices: []*trace.Trace{p.Trace}}); err != nil {
		t.Fatal(err)
	}
	s, err := snapshot.Read(&b, snapshot.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := s.Devices[0]
	if err := got.CheckValid(); err != nil {
		t.Fatal(err)
	}
	if len(got.Initial) != len(p.Trace.Initial) || len(got.Events) != len(p.Trace.Events) || len(spans(got)) != 6 || got.Peak() != p.Trace.Peak() {
		t.Errorf("%d before, %d events, %d spans, peak %+v; want %d, %d, 6, %+v", len(got.Initial), len(got.Events), len(spans(got)), got.Peak(),
			len(p.Trace.Initial), len(p.Trace.Events), p.Trace.Peak())
	}
}

func TestResultIsJSON(t *testing.T) {
	_, r := profile(t, Cell{Workload: workloadtest.Parse(t, `{"model": "lm-small", "config": {"num_layers": 1}}`), Card: workloadtest.Card(t, "h200"), Steps: 1})
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if back.Peak == nil || *back.Peak != *r.Peak || len(back.Largest) != len(r.Largest) || back.Workload.Sequence != 128 {
		t.Errorf("read back as %+v", back)
	}
}

func TestProfileIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Predictor{}.Profile(ctx, Cell{Workload: workloadtest.Parse(t, `{"model": "lm-small"}`), Card: workloadtest.Card(t, "h200"), Steps: 1})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}

func TestMixed(t *testing.T) {
	if p, fell := Mixed(workload.AMPBF16, workloadtest.Card(t, "t4")); p != workload.AMPFP16 || !fell {
		t.Errorf("a T4 computes in %s", p)
	}
	if p, fell := Mixed(workload.AMPBF16, workloadtest.Card(t, "a10")); p != workload.AMPBF16 || fell {
		t.Errorf("an A10 computes in %s", p)
	}
}

func TestCellName(t *testing.T) {
	for data, want := range map[string]string{
		`{"model": "lm-2.7b", "sequence": 512}`:                                              "2.7B_ctx512_training",
		`{"model": "lm-2.7b", "sequence": 128, "phase": "forward", "precision": "amp-bf16"}`: "2.7B_ctx128_forward_bf16",
		`{"model": "resnet", "phase": "infer", "precision": "tf32"}`:                         "resnet_224px_inference_tf32",
		`{"config": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}}`:           "GPT2LMHeadModel_ctx128_training",
	} {
		if got := CellName(workloadtest.Parse(t, data)); got != want {
			t.Errorf("%s is %s, want %s", data, got, want)
		}
	}
}

// TestResultLeavesItsProfile: a result of some kilobytes does not keep a trace of
// megabytes.
func TestResultLeavesItsProfile(t *testing.T) {
	p, r := profile(t, Cell{Workload: workloadtest.Parse(t, `{"model": "lm-small", "batch": 2}`), Card: workloadtest.Card(t, "h200"), Warmup: 5, Steps: 2})
	made := weak.Make(p.Trace)
	runtime.GC()
	if made.Value() != nil {
		t.Error("the trace of a profile is still there, though only its result is")
	}
	runtime.KeepAlive(r)
}
