package predict

import (
	"memorymark/internal/allocator"
	"memorymark/internal/gpu"
	"memorymark/internal/search"
	"memorymark/internal/workload"
)

// mostBatch bounds the search: no step of a billion samples is of interest.
const mostBatch = 1 << 30

// Largest finds the largest batch of a workload that trains on a card: three
// steps in a fresh process, on the simulated allocator, under the card's or
// the workload's limit. Its own batch does not matter.
//
// Fitting is not monotonic: what the first step leaves in the cache makes some
// sizes fail that are smaller than some that fit. So the search goes in two
// stages. Where a settled process runs out of memory is a clear edge; from
// there the answer is the next smaller size that survives a fresh process,
// while one more does not.
func Largest(w *workload.Workload, card *gpu.Card, o search.Options) (*search.Result, error) {
	if o.Most == 0 {
		o.Most = mostBatch
	}
	if o.Start == 0 {
		settled, err := settledEdge(w, card, o)
		if err != nil {
			return nil, err
		}
		o.Start = max(settled, 1)
	}
	return search.NearestBelow(func(batch int64) (bool, error) {
		s, err := Simulate(withBatch(w, batch), card)
		if err != nil {
			return false, err
		}
		return s.Fits(), nil
	}, o)
}

// settledEdge is the largest batch whose steps fit once the process has
// settled.
func settledEdge(w *workload.Workload, card *gpu.Card, o search.Options) (int64, error) {
	start, err := edge(w, card)
	if err != nil {
		return 0, err
	}
	r, err := search.Largest(func(batch int64) (bool, error) {
		p, err := Run(withBatch(w, batch), deviceOf(card), steps)
		if err != nil {
			return false, err
		}
		s := Simulation{Process: p, Card: card}
		return allocator.PlaySettled(p.Trace(), s.options(Limit(w, card)), s.stages(), stepStage+1).Failed == nil, nil
	}, search.Options{Start: start, Most: o.Most, MultipleOf: o.MultipleOf})
	if err != nil {
		return 0, err
	}
	return r.Largest, nil
}

func withBatch(w *workload.Workload, batch int64) *workload.Workload {
	at := *w
	at.Batch = batch
	return &at
}

// edge estimates where memory runs out. Reserved memory is nearly a line in
// the batch, but only beyond the batches at which the optimizer's step is the
// peak, so the line is drawn anew through where the first one ended.
func edge(w *workload.Workload, card *gpu.Card) (int64, error) {
	limit := float64(Limit(w, card))
	small, large := int64(8), int64(64)
	low, err := reservedAt(w, card, small)
	if err != nil {
		return 0, err
	}
	for range 3 {
		high, err := reservedAt(w, card, large)
		if err != nil {
			return 0, err
		}
		slope := (high - low) / float64(large-small)
		if slope <= 0 {
			small, low, large = large, high, large*4
			continue
		}
		next := int64((limit-low)/slope) + small
		if next < 1 {
			return 1, nil
		}
		next = min(next, mostBatch)
		if diff := next - large; diff*diff*400 <= next*next { // within 5 %
			return next, nil
		}
		if next < large {
			large = max(next, small+1)
		} else {
			small, low, large = large, high, next
		}
	}
	return large, nil
}

// reservedAt is the peak of reserved memory at a batch, without a limit.
func reservedAt(w *workload.Workload, card *gpu.Card, batch int64) (float64, error) {
	p, err := Run(withBatch(w, batch), deviceOf(card), 2)
	if err != nil {
		return 0, err
	}
	s := Simulation{Process: p, Card: card}
	peak := int64(0)
	for _, stage := range s.play(noLimit).Stages {
		peak = max(peak, stage.PeakReserved)
	}
	return float64(peak), nil
}
