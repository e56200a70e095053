package plan

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"memorymark/internal/allocator"
	"memorymark/internal/bytesize"
	"memorymark/internal/change"
	"memorymark/internal/predict"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

func fitOn(t *testing.T, draft, card string) *Fit {
	t.Helper()
	q := question(t, draft, card)
	f, err := MakeFit(context.Background(), FitQuestion{Draft: q.Draft, Card: q.Cards[0].Card})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFitsAsItIs(t *testing.T) {
	if f := fitOn(t, `{"model": "gpt2", "batch": 8}`, "t4"); !f.Fits || len(f.Options) != 0 {
		t.Errorf("%+v", f)
	}
}

// Every option fits, and keeps the samples of an update.
func TestOptionsOfFit(t *testing.T) {
	f := fitOn(t, `{"model": "gpt2", "sequence": 1024, "batch": 16, "accumulate": 1}`, "rtx-4060")
	if f.Fits || len(f.Options) == 0 {
		t.Fatalf("%+v", f)
	}
	for _, o := range f.Options {
		if got := o.Batch * o.Passes; got != 16 {
			t.Errorf("%v: %d samples for each update", o.Changes, got)
		}
		p, err := predict.Predict(o.Workload, o.Card, predict.Options{})
		if err != nil || !p.Fits {
			t.Errorf("%v does not fit: %v", o.Changes, err)
		}
	}
}

func TestNothingHelps(t *testing.T) {
	f := fitOn(t, `{"model": "phi-4"}`, "rtx-4060")
	if f.Fits || len(f.Options) != 0 || f.Least == nil {
		t.Fatalf("%+v", f)
	}
	d := question(t, `{"model": "phi-4", "batch": 1, "accumulate": 16, "precision": "bf16", "checkpointing": true, "adapter": `+change.LoRA+`, "quantize": "nf4-double"}`, "rtx-4060")
	if got := predicted(t, d.Draft, d.Cards[0].Card); got.Fits || got.PeakReserved() != f.Least.Needs {
		t.Errorf("%+v: predicted are %v", f.Least, got.PeakReserved())
	}
}

func TestFitChoosesParallel(t *testing.T) {
	q := question(t, `{"model": "gpt2", "parallel": {"kind": "ddp", "gpus": 2}}`, "t4")
	if _, err := MakeFit(context.Background(), FitQuestion{Draft: q.Draft, Card: q.Cards[0].Card}); err == nil {
		t.Error("a workload on two GPUs was fitted to one")
	}
}

// What an option takes, and its verdict, is what predict says of its workload; none
// is called the first choice that leaves less than the margin where another leaves it.
func TestFitsArePredictions(t *testing.T) {
	for _, x := range [][2]string{
		{`{"model": "llama-3.2-1b", "batch": 8}`, "t4"},
		{`{"model": "llama-3.1-8b"}`, "rtx-4090"},
		{`{"model": "flan-t5-xl"}`, "rtx-3060"}, // an option of which reserves the limit, unless cached memory is freed in time
	} {
		f := fitOn(t, x[0], x[1])
		if f.Verdict != predict.DoesNotFit || len(f.Options) == 0 || f.Options[0].Verdict != predict.Fits {
			t.Fatalf("%s: %s, %d options", x[0], f.Verdict, len(f.Options))
		}
		for _, o := range f.Options {
			p, err := predict.Predict(o.Workload, o.Card, predict.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if p.PeakReserved() != o.Peak.Reserved || p.Verdict != o.Verdict {
				t.Errorf("%s: %v (%s), predicted is %v (%s)", change.Labels(o.Changes), o.Peak.Reserved, o.Verdict, p.PeakReserved(), p.Verdict)
			}
			if left := f.Limit - o.Peak.Reserved; (left < f.Margin) != (o.Verdict == predict.Tight) || f.Margin != max(o.Card.Memory.Bytes/50, 300<<20) {
				t.Errorf("%s: %s with %v left of a margin of %v", change.Labels(o.Changes), o.Verdict, left, f.Margin)
			}
		}
	}
}

// A family that is not modelled is fitted with a probe: nothing is said of what is not
// known, neither what the workload needs that ran out of memory nor how fast it is.
func TestFitWithProbe(t *testing.T) {
	d, err := workload.ParseDraft([]byte(`{"config": {"model_type": "fnet"}, "batch": 8}`))
	if err != nil {
		t.Fatal(err)
	}
	card := workloadtest.Card(t, "rtx-4060")
	probe := func(trial change.Trial) (*change.Steps, error) {
		out := &change.Steps{Verdict: predict.Fits, Peak: allocator.Usage{PeakReserved: 5 * bytesize.GiB}, Notes: []string{"PyTorch ran it"}}
		switch {
		case trial.Workload.Optimizer == workload.SGD:
			return nil, errors.New("it broke\nin line 3")
		case !trial.Workload.Checkpointing:
			return &change.Steps{Verdict: predict.DoesNotFit, Reason: "out of memory", Notes: out.Notes}, nil
		}
		return out, nil
	}
	q := FitQuestion{Draft: d, Card: card, Probe: probe}
	f, err := MakeFit(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if f.Fits || f.Verdict != predict.DoesNotFit || f.Needs != 0 || f.Reason != "out of memory" || f.Least != nil {
		t.Errorf("%+v", f)
	}
	if want := []string{"PyTorch ran it", "SGD was not tried: it broke"}; !slices.Equal(f.Notes, want) {
		t.Errorf("notes are %q, not %q", f.Notes, want)
	}
	if len(f.Options) != 1 || f.Options[0].Setup != "checkpointing" || f.Options[0].Peak.Reserved != 5*bytesize.GiB || f.Options[0].Speed != (Speed{}) {
		t.Errorf("%+v", f.Options)
	}
	if _, err := json.Marshal(f); err != nil {
		t.Error(err)
	}
	q.Probe = nil
	if _, err := MakeFit(t.Context(), q); !workload.Unmodelled(err) {
		t.Errorf("predicting it: %v", err)
	}
}
