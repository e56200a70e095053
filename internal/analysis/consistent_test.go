package analysis

import (
	"errors"
	"fmt"
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// The grid of TestAnswersAgreeWithPredictions: models of every kind, from
// cards that the large ones do not fit to one that all do.
var (
	gridModels = []struct {
		id        string
		sequences []int64
	}{
		{"bert", []int64{128}},
		{"gpt2", []int64{128, 1024}},
		{"resnet", []int64{0}},
		{"t5-small", []int64{512}},
		{"llama-3.2-1b", []int64{128, 2048}},
		{"qwen2.5-3b", []int64{512}},
		{"llama-3.1-8b", []int64{128, 1024}},
	}
	gridCards      = []string{"t4", "a10", "a100-80gb"}
	gridPrecisions = []workload.Precision{workload.FP32, workload.AMPFP16, workload.BF16}
	gridOptimizers = []workload.Optimizer{workload.AdamW, workload.SGD}
)

// TestAnswersAgreeWithPredictions holds every answer of a grid to what a
// prediction of the same batch under the same limit says. Answers are made of
// many parts, and none may contradict another.
func TestAnswersAgreeWithPredictions(t *testing.T) {
	for _, model := range gridModels {
		for _, sequence := range model.sequences {
			for _, card := range gridCards {
				for _, precision := range gridPrecisions {
					for _, optimizer := range gridOptimizers {
						r := request(t, model.id, card, func(w *workload.Workload) {
							w.Precision, w.Optimizer, w.Sequence = precision, optimizer, sequence
						})
						if optimizer == workload.SGD {
							r.MultipleOf, r.GlobalBatch = 4, 96
						}
						t.Run(fmt.Sprintf("%s_%d_%s_%s_%s", model.id, sequence, card, precision, optimizer), func(t *testing.T) {
							t.Parallel()
							checkAnswer(t, r)
						})
					}
				}
			}
		}
	}
}

func checkAnswer(t *testing.T, r Request) {
	t.Helper()
	a, err := Predict(r)
	var small *TooSmallError
	if errors.As(err, &small) {
		if trains(r, small.Batch, 1) {
			t.Errorf("batch %d is predicted to train: %v", small.Batch, err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	checkBatches(t, r, a)
	checkSpeeds(t, a)
	if g := a.Accumulation; g != nil && (!trains(r, g.MicroBatch, g.Steps) || g.MicroBatch*g.Steps < r.GlobalBatch) {
		t.Errorf("%d × %d accumulated for %d does not train", g.MicroBatch, g.Steps, r.GlobalBatch)
	}
}

// trains is the oracle: a prediction of its own, as predict makes it.
func trains(r Request, batch, accumulated int64) bool {
	w := *r.Workload
	w.Batch, w.Accumulate = batch, int(accumulated)
	s, err := predict.Simulate(&w, r.Card)
	return err == nil && s.Fits()
}

func checkBatches(t *testing.T, r Request, a *Answer) {
	t.Helper()
	unit := max(r.MultipleOf, 1)
	if !trains(r, a.OptimalBatch, 1) || trains(r, a.OptimalBatch+unit, 1) {
		t.Errorf("batch %d must be the last that trains", a.OptimalBatch)
	}
	if !trains(r, a.Recommended, 1) || a.Recommended > a.OptimalBatch {
		t.Errorf("batch %d of %d is recommended and does not train", a.Recommended, a.OptimalBatch)
	}
	for below := unit; below <= 4*unit && below < a.Recommended && !a.Tight; below += unit {
		if !trains(r, a.Recommended-below, 1) {
			t.Errorf("batch %d is recommended, and %d fewer do not train", a.Recommended, below)
		}
	}
	if fits := trains(r, a.CurrentBatch, 1); fits != a.CurrentFits || fits && a.CurrentBatch%unit == 0 && a.CurrentBatch > a.OptimalBatch {
		t.Errorf("the present batch %d trains: %v, the answer says %v and that %d is the largest", a.CurrentBatch, fits, a.CurrentFits, a.OptimalBatch)
	}
	for _, x := range a.Results {
		if x.Success != trains(r, x.Batch, 1) || x.Success != (x.SamplesPerSecond > 0) {
			t.Errorf("%+v", x)
		}
	}
	for _, run := range a.FailsBelow {
		for batch := run.From; batch <= run.To; batch += unit {
			if batch >= a.OptimalBatch || trains(r, batch, 1) {
				t.Errorf("batch %d is said to fail below %d", batch, a.OptimalBatch)
			}
		}
	}
}

func checkSpeeds(t *testing.T, a *Answer) {
	t.Helper()
	if !a.CurrentFits && (a.Speedup != 0 || a.Savings != nil) {
		t.Errorf("batch %d does not train, and yet it has a speed: %v, %v", a.CurrentBatch, a.Speedup, a.Savings)
	}
	if a.CurrentFits && (a.Speedup == 0 || a.Savings == nil) {
		t.Errorf("batch %d trains, and there is nothing to say of it", a.CurrentBatch)
	}
	if a.Savings != nil && *a.Savings < 0 {
		t.Errorf("savings of %.2f", *a.Savings)
	}
}

// Llama 3.1 8B in bf16 fits an A100 in patches: what is recommended is below
// them, and they are named.
func TestPatchyFitting(t *testing.T) {
	a, err := Predict(request(t, "llama-3.1-8b", "a100-80gb", func(w *workload.Workload) { w.Precision = workload.BF16 }))
	if err != nil {
		t.Fatal(err)
	}
	if len(a.FailsBelow) == 0 || a.FailsBelow[len(a.FailsBelow)-1].To != a.OptimalBatch-1 {
		t.Fatalf("the batches just below %d are not said to fail: %v", a.OptimalBatch, a.FailsBelow)
	}
	if first := a.FailsBelow[0].From; a.Recommended+safeAbove >= first || a.Tight {
		t.Errorf("batch %d is recommended and %d fails", a.Recommended, first)
	}
}
