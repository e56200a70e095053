package study

import (
	"memorymark/internal/change"
	"memorymark/internal/gpu"
	"memorymark/internal/predict"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

// Fit is what would fit where a cell does not.
type Fit struct {
	Batch   int64 `json:"largest_batch,omitempty"`   // at the cell's context; 0 if none fits
	Context int64 `json:"largest_context,omitempty"` // at the cell's batch; 0 if none fits, or there is no context
	// Changes are single changes with which the cell itself fits, the preferred first.
	Changes []change.Change `json:"changes,omitempty"`
}

// WhatFits predicts what would fit the card of a cell that does not.
func WhatFits(c Cell) (*Fit, error) {
	var f Fit
	largest, err := predict.NewBatches(c.Workload, c.Card, nil).Largest(search.Options{Most: max(c.Workload.Batch-1, 1)})
	if err != nil {
		return nil, err
	}
	f.Batch = largest.Largest
	if f.Context, err = largestContext(c); err != nil {
		return nil, err
	}
	f.Changes, err = singleChanges(c)
	return &f, err
}

// singleChanges are those with which a cell fits.
func singleChanges(c Cell) ([]change.Change, error) {
	d, err := c.Workload.Draft(nil)
	if err != nil {
		return nil, err
	}
	found, err := change.Least(change.Question{
		Draft: d, Card: c.Card, Limit: predict.Limit(c.Workload, c.Card), Margin: predict.MarginOf(c.Workload, c.Card), Full: true, Most: 1,
	})
	if err != nil {
		return nil, err
	}
	var out []change.Change
	for _, s := range found.Sets {
		out = append(out, s.Changes...)
	}
	return out, nil
}

// largestContext is the longest context that fits at the cell's batch.
func largestContext(c Cell) (int64, error) {
	if c.Workload.TakesImages() || c.Workload.Sequence < 2 {
		return 0, nil
	}
	found, err := search.Bisect(func(context int64) (bool, error) {
		w := *c.Workload
		w.Sequence = context
		s, err := predict.Run(&w, c.Card, predict.Options{})
		return err == nil && s.Fits(), err
	}, search.Options{Start: max(c.Workload.Sequence/2, 1), Most: c.Workload.Sequence - 1})
	if err != nil {
		return 0, err
	}
	return found.Largest, nil
}

// Mixed returns the precision that autocast can use on a card: fp16 instead of
// bf16 where the card has no bf16, and then fellBack is true.
func Mixed(wanted workload.Precision, c *gpu.Card) (p workload.Precision, fellBack bool) {
	if wanted == workload.AMPBF16 && !c.HasBF16() {
		return workload.AMPFP16, true
	}
	return wanted, false
}
