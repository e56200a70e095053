package torch

import (
	"cmp"
	"slices"
)

// Partition makes the optimizer a ZeroRedundancyOptimizer: it updates the
// parameters of the first rank alone, and has no state of others. The largest
// parameter goes to the rank that has the least so far, then the next, so the
// first rank has the largest one
// (torch/distributed/optim/zero_redundancy_optimizer.py, _partition_parameters).
// Updated parameters are broadcast one by one, in place.
func (o *Optimizer) Partition(ranks int64) {
	bySize := slices.SortedStableFunc(slices.Values(o.t.learned()), func(a, b *Tensor) int { return cmp.Compare(b.Numel(), a.Numel()) })
	sizes := make([]int64, ranks)
	var own []*Tensor
	for _, p := range bySize {
		rank := slices.Index(sizes, slices.Min(sizes))
		sizes[rank] += p.Numel()
		if rank == 0 {
			own = append(own, p)
		}
	}
	o.groups, o.partitioned = [][]*Tensor{own}, true
}
