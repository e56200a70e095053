package plan

import (
	"context"
	"testing"

	"memorymark/internal/change"
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
		p, err := predict.Predict(o.Workload, o.Card)
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
			p, err := predict.Predict(o.Workload, o.Card)
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
