package study

import (
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

// Fit is what would fit where a cell does not.
type Fit struct {
	Batch   int64 `json:"largest_batch,omitempty"`   // at the cell's context; 0 if none fits
	Context int64 `json:"largest_context,omitempty"` // at the cell's batch; 0 if none fits, or there is no context
	// Changes are single changes with which the cell itself fits.
	Changes []string `json:"changes,omitempty"`
}

// WhatFits predicts what would fit the card of a cell that does not.
func WhatFits(c Cell) (*Fit, error) {
	var f Fit
	largest, err := predict.NewRunner(c.Workload, c.Card).Largest(search.Options{Most: max(c.Workload.Batch-1, 1)})
	if err != nil {
		return nil, err
	}
	f.Batch = largest.Largest
	if f.Context, err = largestContext(c); err != nil {
		return nil, err
	}
	for _, change := range changes {
		w := *c.Workload
		if !change.apply(&w, c.Card) {
			continue
		}
		if s, err := predict.Simulate(&w, c.Card); err == nil && s.Fits() {
			f.Changes = append(f.Changes, change.name)
		}
	}
	return &f, nil
}

// largestContext is the longest context that fits at the cell's batch.
func largestContext(c Cell) (int64, error) {
	if c.Workload.TakesImages() || c.Workload.Sequence < 2 {
		return 0, nil
	}
	found, err := search.Bisect(func(context int64) (bool, error) {
		w := *c.Workload
		w.Sequence = context
		s, err := predict.Simulate(&w, c.Card)
		return err == nil && s.Fits(), err
	}, search.Options{Start: max(c.Workload.Sequence/2, 1), Most: c.Workload.Sequence - 1})
	if err != nil {
		return 0, err
	}
	return found.Largest, nil
}

// changes are the flags that people can set; apply reports whether one would
// change anything.
var changes = []struct {
	name  string
	apply func(*workload.Workload, *gpu.Card) bool
}{
	{"mixed precision", func(w *workload.Workload, c *gpu.Card) bool {
		before := w.Precision
		w.Precision, _ = Mixed(workload.AMPBF16, c)
		return before == workload.FP32 || before == workload.TF32
	}},
	{"--checkpointing", func(w *workload.Workload, _ *gpu.Card) bool {
		before := w.Checkpointing
		w.Checkpointing = true
		return !before
	}},
	{"--optimizer-impl fused", func(w *workload.Workload, _ *gpu.Card) bool {
		before := w.OptimizerImpl
		w.OptimizerImpl = workload.Fused
		return trains(w) && w.HasFused() && before != workload.Fused
	}},
	{"--optimizer sgd", func(w *workload.Workload, _ *gpu.Card) bool {
		before := w.Optimizer
		w.Optimizer = workload.SGD
		return trains(w) && before != workload.SGD
	}},
	{"--expandable-segments", func(w *workload.Workload, _ *gpu.Card) bool {
		before := w.ExpandableSegments
		w.ExpandableSegments = true
		return !before
	}},
}

func trains(w *workload.Workload) bool {
	return w.Phase == workload.Train && w.Optimizer != workload.NoOptimizer
}

// Mixed returns the precision that autocast can use on a card: fp16 instead of
// bf16 where the card has no bf16, and then fellBack is true.
func Mixed(wanted workload.Precision, c *gpu.Card) (p workload.Precision, fellBack bool) {
	if wanted == workload.AMPBF16 && !c.HasBF16() {
		return workload.AMPFP16, true
	}
	return wanted, false
}
