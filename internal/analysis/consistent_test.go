//go:build !race

package analysis

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// The grid of TestAnswersAgreeWithPredictions: models of every kind, from
// cards that the large ones do not fit to one that all do.
var (
	gridModels = []struct {
		id       string
		sequence int64
	}{{"bert", 128}, {"gpt2", 1024}, {"resnet", 0}, {"t5-small", 512}, {"llama-3.2-1b", 2048}, {"qwen2.5-3b", 512}, {"llama-3.1-8b", 128}}
	gridCards      = []string{"t4", "a10", "a100-80gb"}
	gridPrecisions = []workload.Precision{workload.FP32, workload.AMPFP16, workload.BF16}
	gridOptimizers = []workload.Optimizer{workload.AdamW, workload.SGD}
)

// TestAnswersAgreeWithPredictions holds every answer of a grid to what a
// prediction of the same batch under the same limit says. Answers are made of
// many parts, and none may contradict another.
func TestAnswersAgreeWithPredictions(t *testing.T) {
	for _, model := range gridModels {
		for _, card := range gridCards {
			for _, precision := range gridPrecisions {
				for _, optimizer := range gridOptimizers {
					r := request(t, model.id, card, func(w *workload.Workload) {
						w.Precision, w.Optimizer, w.Sequence = precision, optimizer, model.sequence
					})
					if optimizer == workload.SGD {
						r.MultipleOf, r.GlobalBatch = 4, 96
					}
					t.Run(fmt.Sprintf("%s_%s_%s_%s", model.id, card, precision, optimizer), func(t *testing.T) {
						t.Parallel()
						checkAnswer(t, r)
					})
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
	oracle := predict.NewBatches(r.Workload, r.Card, nil)
	checkBatches(t, r, a, func(batch int64) bool {
		s, err := oracle.Process(batch)
		return err == nil && s.Fits()
	})
	checkSpeeds(t, a)
	checkRecommended(t, a)
	checkGrowth(t, a)
	if g := a.Accumulation; g != nil && (!trains(r, g.MicroBatch, g.Steps) || g.MicroBatch*g.Steps < r.GlobalBatch) {
		t.Errorf("%d × %d accumulated for %d does not train", g.MicroBatch, g.Steps, r.GlobalBatch)
	}
}

// trains is the oracle: a prediction of its own, as predict makes it.
func trains(r Request, batch, accumulated int64) bool {
	w := *r.Workload
	w.Batch, w.Accumulate = batch, int(accumulated)
	s, err := predict.Run(&w, r.Card, predict.Options{})
	return err == nil && s.Fits()
}

func checkBatches(t *testing.T, r Request, a *Answer, trains func(int64) bool) {
	t.Helper()
	unit := max(r.MultipleOf, 1)
	if !trains(a.OptimalBatch) || trains(a.OptimalBatch+unit) {
		t.Errorf("batch %d must be the last that trains", a.OptimalBatch)
	}
	if !trains(a.Recommended) || a.Recommended > a.OptimalBatch {
		t.Errorf("batch %d of %d is recommended and does not train", a.Recommended, a.OptimalBatch)
	}
	for below := unit; below <= 4*unit && below < a.Recommended && !a.Tight; below += unit {
		if !trains(a.Recommended - below) {
			t.Errorf("batch %d is recommended, and %d fewer do not train", a.Recommended, below)
		}
	}
	if fits := trains(a.CurrentBatch); fits != a.CurrentFits || fits && a.CurrentBatch%unit == 0 && a.CurrentBatch > a.OptimalBatch {
		t.Errorf("the present batch %d trains: %v, the answer says %v and that %d is the largest", a.CurrentBatch, fits, a.CurrentFits, a.OptimalBatch)
	}
	for _, x := range a.Results {
		if x.Success != trains(x.Batch) || x.Success != (x.SamplesPerSecond > 0) {
			t.Errorf("%+v", x)
		}
	}
	for _, run := range a.FailsBelow {
		for batch := run.From; batch <= run.To; batch += unit {
			if batch >= a.OptimalBatch || trains(batch) {
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

// What is said of memory against the batch holds for every batch looked at.
func checkGrowth(t *testing.T, a *Answer) {
	t.Helper()
	if a.NextFailure == nil || a.PeakPhase == "" {
		t.Errorf("why the next batch fails: %v, what decides the peak: %q", a.NextFailure, a.PeakPhase)
	}
	for _, x := range a.Results {
		if l := a.MemoryLine; l != nil && x.Batch >= l.From && x.Batch <= a.OptimalBatch && math.Abs(float64(l.At(x.Batch))/float64(x.Memory)-1) > 0.03 {
			t.Errorf("the line says %v at batch %d, which takes %d", l.At(x.Batch), x.Batch, x.Memory)
		}
		if flat := math.Abs(float64(x.Memory)/float64(a.FlatPeak)-1) <= hardly; x.Batch <= a.FlatTo && !flat {
			t.Errorf("batch %d is said not to matter, and takes %d in place of %d", x.Batch, x.Memory, a.FlatPeak)
		}
	}
}

// Llama 3.1 8B in bf16 fits an A100 in patches: what is recommended is below
// them, and they are named.
func TestPatchyFitting(t *testing.T) {
	a := mustPredict(t, request(t, "llama-3.1-8b", "a100-80gb", func(w *workload.Workload) { w.Precision = workload.BF16 }))
	if len(a.FailsBelow) == 0 || a.FailsBelow[len(a.FailsBelow)-1].To != a.OptimalBatch-1 {
		t.Fatalf("the batches just below %d are not said to fail: %v", a.OptimalBatch, a.FailsBelow)
	}
	if first := a.FailsBelow[0].From; a.Recommended+safeAbove >= first || a.Tight {
		t.Errorf("batch %d is recommended and %d fails", a.Recommended, first)
	}
}

// The optimizer step of a large model takes more than forward and backward of
// a few samples: that is said, and no line that does not hold.
func TestWhatDecidesThePeak(t *testing.T) {
	large := mustPredict(t, request(t, "llama-3.1-8b", "a100-80gb", func(w *workload.Workload) { w.Precision = workload.BF16 }))
	if large.MemoryLine != nil || large.FlatPhase != "optimizer" || large.FlatTo < 16 {
		t.Errorf("%+v", large.Growth)
	}
	small := mustPredict(t, request(t, "bert", "a10"))
	if l := small.MemoryLine; l == nil || l.From <= small.FlatTo || small.FlatTo < 2 || small.PeakPhase != "backward" {
		t.Errorf("%+v, %+v", small.Growth, l)
	}
	var notes strings.Builder
	for _, n := range append(large.Notes, small.Notes...) {
		fmt.Fprintln(&notes, n.About+":", n.Text)
	}
	for _, want := range []string{"the optimizer step sets the peak, and the batch hardly matters", "batch 33 fails: in the backward pass", "some smaller batches do not fit"} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("no note says %q:\n%s", want, notes.String())
		}
	}
}
