package torch

import (
	"cmp"
	"slices"
)

// Partition makes the optimizer a ZeroRedundancyOptimizer: it updates only its
// rank's parameters, and has no state for others. Updated parameters are
// broadcast one by one, in place.
func (o *Optimizer) Partition(ranks, rank int64) {
	o.parts = o.t.partitions(ranks)
	o.groups, o.partitioned = [][]*Tensor{o.parts[rank]}, true
}

// partitions returns the parameters of each rank. The largest parameter goes to
// the rank that has the least so far, then the next, so the first rank has the
// largest one (torch/distributed/optim/zero_redundancy_optimizer.py,
// _partition_parameters).
func (t *Torch) partitions(ranks int64) [][]*Tensor {
	bySize := slices.SortedStableFunc(slices.Values(t.trainable()), func(a, b *Tensor) int { return cmp.Compare(b.Numel(), a.Numel()) })
	sizes, out := make([]int64, ranks), make([][]*Tensor, ranks)
	for _, p := range bySize {
		rank := slices.Index(sizes, slices.Min(sizes))
		sizes[rank] += p.Numel()
		out[rank] = append(out[rank], p)
	}
	return out
}
