package torch

import "memorymark/internal/steptime"

// ClipGradNorm is torch.nn.utils.clip_grad_norm_ by foreach functions
// (torch/nn/utils/clip_grad.py). The gradients are scaled in place. It returns
// their norm.
func (t *Torch) ClipGradNorm() Value {
	var grads []*Tensor
	for _, p := range t.withGrad() {
		grads = append(grads, p.grad)
	}
	if len(grads) == 0 {
		return Value{}
	}
	since, bytes := t.moment(), int64(0)
	for _, g := range grads {
		bytes += g.bytes()
	}
	total := t.totalNorm(grads)
	t.noteFused(since, steptime.Foreach, Float32, float64(bytes))
	t.kernel(steptime.Foreach, Float32, float64(2*bytes)) // scaled in place
	// clip_coef = max_norm / (total_norm + 1e-6), which Python turns into a
	// reciprocal and a product (Tensor.__rdiv__).
	sum := t.empty(total.DType)
	reciprocal := t.empty(total.DType)
	coefficient := t.empty(total.DType)
	t.release(reciprocal, sum)
	clamped := t.empty(total.DType)
	t.release(coefficient, clamped)
	return Value{total}
}

// totalNorm is _get_total_norm: a norm of each gradient, stacked, and the norm
// of those.
func (t *Torch) totalNorm(grads []*Tensor) *Tensor {
	var norms []*Tensor
	for _, group := range byDType(grads) {
		norms = append(norms, t.foreachNorm(group)...)
	}
	dtype := norms[0].DType
	for _, n := range norms {
		dtype = promote(dtype, n.DType)
	}
	stacked := t.empty(dtype, int64(len(norms)))
	all := t.reduceNorms(stacked)
	total := t.sum(all, []int{0}, false, dtype)
	t.release(all, stacked)
	t.releaseList(norms)
	return total
}

// reduceNorms makes norms of this rank's parts those of all ranks': squares are
// summed, and their roots taken (torch/distributed/tensor/_ops/_math_ops.py,
// _NormPartial). The caller owns what it returns.
func (t *Torch) reduceNorms(norms *Tensor) *Tensor {
	if !t.sharded() {
		return t.retain(norms)
	}
	squares := t.emptyLike(norms, norms.DType)
	sums := t.emptyLike(norms, norms.DType)
	roots := t.emptyLike(norms, norms.DType)
	t.release(squares, sums)
	return roots
}

// foreachNorm is _foreach_norm: partial sums in the accumulation type, then the
// results (aten/src/ATen/native/cuda/ForeachReduceOp.cu).
func (t *Torch) foreachNorm(tensors []*Tensor) []*Tensor {
	partials := t.normPartials(tensors)
	norms := make([]*Tensor, len(tensors))
	for i, x := range tensors {
		norms[i] = t.empty(x.DType)
	}
	t.releaseList(partials)
	return norms
}

// normPartials are the partial sums: for each tensor as many as the largest has
// chunks; since 2.15, by its recordings, as many as it has itself, after a list
// of where each one's begin.
func (t *Torch) normPartials(tensors []*Tensor) []*Tensor {
	const chunk = 65536 // kChunkSize of MultiTensorApply.cuh
	most, all := int64(0), int64(0)
	for _, x := range tensors {
		n := divUp(x.Numel(), chunk)
		most, all = max(most, n), all+n
	}
	if t.Version.Before(2, 15) {
		return []*Tensor{t.empty(Float32, int64(len(tensors))*most)}
	}
	return []*Tensor{t.empty(Int64, int64(len(tensors))+1), t.empty(Float32, all)}
}
