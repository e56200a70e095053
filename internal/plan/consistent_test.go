//go:build !race

package plan

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"testing"

	"memorymark/internal/predict"
	"memorymark/internal/workload"
)

// What a plan says of an option is what a prediction of the same workload says.
func TestOptionsArePredictions(t *testing.T) {
	q := question(t, `{"model": "gpt2", "sequence": 512}`, "t4, rtx-4090, h100")
	q.MaxGPUs = 4
	p := make1(t, q)
	if len(p.Options) < 10 {
		t.Fatalf("%d options", len(p.Options))
	}
	for _, o := range p.Options {
		w := o.Workload.WithLimit(o.Peak.Limit)
		got, err := predict.Predict(w, o.Card, predict.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !got.Fits || got.PeakReserved() != o.Peak.Reserved || o.Verdict == predict.DoesNotFit {
			t.Errorf("%d × %s, %s: predicted %v (fits: %v), planned %v", o.GPUs, o.GPU, o.Setup, got.PeakReserved(), got.Fits, o.Peak.Reserved)
		}
		if math.Abs(got.StepSeconds/o.Speed.StepSeconds-1) > 0.01 {
			t.Errorf("%d × %s, %s: predicted %g s, planned %g s", o.GPUs, o.GPU, o.Setup, got.StepSeconds, o.Speed.StepSeconds)
		}
		if o.Batch*o.Passes*dataWays(o.Workload) != p.GlobalBatch {
			t.Errorf("%d × %s, %s: %d × %d is not the global batch", o.GPUs, o.GPU, o.Setup, o.Batch, o.Passes)
		}
	}
}

func dataWays(w *workload.Workload) int64 {
	switch {
	case w.Parallel == nil || w.Parallel.Kind == workload.TensorParallel:
		return 1
	case w.Parallel.Kind == workload.FSDPWithTensor:
		return w.Parallel.GPUs / w.Parallel.Tensor
	}
	return w.Parallel.GPUs
}

// A plan for many cards is what the plans for each of them are together, though
// they share what is simulated.
func TestManyCardsAreEachCard(t *testing.T) {
	for name, draft := range map[string]string{
		"language model": `{"model": "smollm2-135m", "config": {"num_hidden_layers": 3}, "sequence": 2048}`,
		"heads capped":   `{"model": "gemma-2-2b", "config": {"num_hidden_layers": 2}, "sequence": 512, "precision": "bf16"}`,
		"encoder":        `{"model": "bert", "config": {"num_hidden_layers": 2}, "sequence": 512}`,
		"images":         `{"model": "resnet"}`,
	} {
		t.Run(name, func(t *testing.T) {
			together := question(t, draft, "t4, rtx-3060, rtx-4060, rtx-4090, l4, a10, a100, h100, h200, b200, rtx-5090")
			together.GlobalBatch, together.MaxGPUs = 32, 4
			plan := make1(t, together)
			if len(plan.Options) < 20 {
				t.Fatalf("%d options", len(plan.Options))
			}
			simulated := 0
			for _, h := range together.Cards {
				alone := together
				alone.Cards = []Holding{h}
				one := make1(t, alone)
				simulated += one.Simulated
				of := func(id string) bool { return id == h.Card.ID }
				sameJSON(t, "options on "+h.Card.ID, apart(kept(plan.Options, func(o *Option) bool { return of(o.GPU) })), apart(one.Options))
				sameJSON(t, "misfits on "+h.Card.ID, kept(plan.Misfits, func(m Misfit) bool { return of(m.GPU) }), one.Misfits)
			}
			if plan.Simulated >= simulated {
				t.Errorf("%d ways are simulated, and %d for each card: nothing is shared", plan.Simulated, simulated)
			}
		})
	}
}

func kept[T any](from []T, keep func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(from), func(x T) bool { return !keep(x) })
}

func sameJSON(t *testing.T, what string, a, b any) {
	t.Helper()
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	if errX != nil || errY != nil || !bytes.Equal(x, y) {
		t.Errorf("%s: %s\nand alone: %s (%v, %v)", what, x, y, errX, errY)
	}
}
