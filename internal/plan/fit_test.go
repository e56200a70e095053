package plan

import (
	"context"
	"testing"

	"memorymark/internal/predict"
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

// Fewer changes than those of the answer do not help, whatever they are.
func TestFewestChanges(t *testing.T) {
	f := fitOn(t, `{"model": "gpt2", "sequence": 1024, "batch": 16, "accumulate": 1}`, "rtx-4060")
	if f.Fits || len(f.Options) == 0 {
		t.Fatalf("%+v", f)
	}
	for _, o := range f.Options {
		if len(o.Changes) != len(f.Options[0].Changes) {
			t.Errorf("%v and %v are not as many", o.Changes, f.Options[0].Changes)
		}
		if got := o.Batch * o.Passes; got != 16 {
			t.Errorf("%v: %d samples for each update", o.Changes, got)
		}
		p, err := predict.Predict(o.Workload, o.Card)
		if err != nil || !p.Fits {
			t.Errorf("%v does not fit: %v", o.Changes, err)
		}
	}
}

func TestNothingHelps(t *testing.T) {
	f := fitOn(t, `{"model": "phi-4"}`, "rtx-4060")
	if f.Fits || len(f.Options) != 0 || f.Least == nil {
		t.Errorf("%+v", f)
	}
}

func TestFitChoosesParallel(t *testing.T) {
	q := question(t, `{"model": "gpt2", "parallel": {"kind": "ddp", "gpus": 2}}`, "t4")
	if _, err := MakeFit(context.Background(), FitQuestion{Draft: q.Draft, Card: q.Cards[0].Card}); err == nil {
		t.Error("a workload on two GPUs was fitted to one")
	}
}
