package analysis

import (
	"slices"

	"memorymark/internal/predict"
)

// Accumulation is how a global batch is made of batches that fit.
type Accumulation struct {
	GlobalBatch int64 `json:"global_batch"`
	MicroBatch  int64 `json:"micro_batch"`
	Steps       int64 `json:"steps"`
}

// accumulate splits a global batch into the fewest equal parts that train; if
// none divide it, the last part is smaller. It is nil if not even one sample
// trains while the gradients of the others are kept.
func accumulate(global, largest int64, trains func(micro, steps int64) bool) *Accumulation {
	split := func(n int64) *Accumulation {
		micro := (global + n - 1) / n
		if !trains(micro, n) {
			return nil
		}
		return &Accumulation{GlobalBatch: global, MicroBatch: micro, Steps: n}
	}
	parts := divisors(global)
	for fewest := (global + largest - 1) / largest; fewest < global; fewest = 2*fewest + 1 {
		for _, n := range parts {
			if n < fewest || n > 2*fewest {
				continue
			}
			if a := split(n); a != nil {
				return a
			}
		}
		if a := split(fewest); a != nil {
			return a
		}
	}
	return split(global)
}

// divisors are the numbers that divide another, in order.
func divisors(of int64) []int64 {
	var out []int64
	for n := int64(1); n <= of/n; n++ {
		if of%n == 0 {
			out = append(out, n, of/n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// settledPasses are as many accumulated passes as there are different ones:
// the first makes the gradients, and the others add to them.
const settledPasses = 3

// trainsAccumulated reports whether a batch trains when that many passes are
// accumulated, which keeps the gradients during forward.
func (p *planner) trainsAccumulated(micro, passes int64) bool {
	w := *p.w
	w.Batch, w.Accumulate = micro, int(min(passes, settledPasses))
	return predict.NewBatches(&w, p.Card, p.Work).FitsWithin(micro, p.limit())
}
