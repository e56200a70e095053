package torch

// Embedding is torch.nn.functional.embedding: a row of the table for each
// index; it saves the indices.
func (t *Torch) Embedding(indices X, m *Embedding) Value {
	index := read(indices)
	shape := append(append([]int64{}, index.Shape...), m.Weight.Shape[1])
	// embedding is weight.index_select(0, indices.reshape(-1)).view(...): an
	// index that is not contiguous is copied.
	flat := t.reshaped(index, []int64{index.Numel()})
	out := t.empty(m.Weight.DType, shape...)
	t.release(flat)
	if n := t.record("Embedding", m.Weight); n != nil {
		index := t.save(n, index)
		n.backward = func(g []*Tensor) []*Tensor { return []*Tensor{t.embeddingBackward(g[0], index, m.Weight)} }
		n.made(out)
	}
	t.done(indices)
	return Value{out}
}

// embeddingBackward is embedding_dense_backward: up to 3072 indices are
// summed straight into the table's gradient; more are sorted first
// (aten/src/ATen/native/cuda/Embedding.cu).
func (t *Torch) embeddingBackward(grad, index, weight *Tensor) *Tensor {
	indices := t.contiguousInput(index)
	dense := t.contiguousInput(grad)
	out := t.empty(grad.DType, weight.Shape...)
	t.release(dense, indices)
	return out
}
