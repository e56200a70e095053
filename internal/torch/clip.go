package torch

// ClipGradNorm is torch.nn.utils.clip_grad_norm_ by foreach functions
// (torch/nn/utils/clip_grad.py). The gradients are scaled in place.
func (t *Torch) ClipGradNorm() {
	var grads []*Tensor
	for _, p := range t.trained() {
		grads = append(grads, p.grad)
	}
	if len(grads) == 0 {
		return
	}
	total := t.totalNorm(grads)
	// clip_coef = max_norm / (total_norm + 1e-6), which Python turns into a
	// reciprocal and a product (Tensor.__rdiv__).
	sum := t.empty(total.DType)
	reciprocal := t.empty(total.DType)
	coefficient := t.empty(total.DType)
	t.release(reciprocal, sum)
	clamped := t.empty(total.DType)
	t.release(coefficient, clamped, total)
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
	total := t.sum(stacked, []int{0}, false, dtype)
	t.release(stacked)
	t.releaseList(norms)
	return total
}

// foreachNorm is _foreach_norm: partial sums in the accumulation type, as many
// for each tensor as the largest has chunks, then the results
// (aten/src/ATen/native/cuda/ForeachReduceOp.cu).
func (t *Torch) foreachNorm(tensors []*Tensor) []*Tensor {
	const chunk = 65536 // kChunkSize of MultiTensorApply.cuh
	chunks := int64(0)
	for _, x := range tensors {
		chunks = max(chunks, divUp(x.Numel(), chunk))
	}
	partial := t.empty(Float32, int64(len(tensors))*chunks)
	norms := make([]*Tensor, len(tensors))
	for i, x := range tensors {
		norms[i] = t.empty(x.DType)
	}
	t.release(partial)
	return norms
}
