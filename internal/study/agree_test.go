package study

import (
	"context"
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/workload"
	"memorymark/internal/workload/workloadtest"
)

// A cell and a prediction of the same workload agree to the byte, also where
// the limit makes the allocator release what it has cached.
func TestCellsAgreeWithPredictions(t *testing.T) {
	card := workloadtest.Card(t, "a100-80gb")
	for _, batch := range []int64{2, 14, 15, 16, 17, 32} { // 15 and 16 fit because of what is released, 17 does not
		d := workload.Draft{}
		d.Set("model", "llama-3.1-8b")
		d.Set("precision", "bf16")
		w, err := d.Workload()
		if err != nil {
			t.Fatal(err)
		}
		w.Batch = batch
		cell := Cell{Workload: w, Card: card, Warmup: DefaultWarmup, Steps: DefaultSteps}
		profile, err := Predictor{}.Profile(context.Background(), cell)
		if err != nil {
			t.Fatal(err)
		}
		r := NewResult(cell, Predictor{}.Engine(), profile)
		p, err := predict.Predict(w, card, predict.Options{})
		if err != nil {
			t.Fatal(err)
		}
		last := p.Steps[len(p.Steps)-1]
		if r.Peak.Allocated != last.PeakAllocated || r.Peak.Reserved != last.PeakReserved || r.Fits() != p.Fits {
			t.Errorf("batch %d: the cell has %+v, the prediction %+v", batch, r.Peak, last)
		}
		if r.OutOfMemory != nil && r.OutOfMemory.Limit != p.Limit || (r.StepSeconds == nil) != (p.StepSeconds == 0) || p.Fits != (p.StepSeconds > 0) {
			t.Errorf("batch %d: limits or times differ: %+v, %v, %v", batch, r.OutOfMemory, r.StepSeconds, p.StepSeconds)
		}
	}
}
