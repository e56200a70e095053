package torch

import "memorymark/internal/steptime"

// Embedding is torch.nn.functional.embedding: a row of the table for each
// index; it saves the indices.
func (t *Torch) Embedding(indices X, m *Embedding) Value { return t.inputHook(m, t.rows(indices, m)) }

func (t *Torch) rows(indices X, m *Embedding) Value {
	index := read(indices)
	shape := append(append([]int64{}, index.Shape...), m.Weight.Shape[1])
	// embedding is weight.index_select(0, indices.reshape(-1)).view(...): an
	// index that is not contiguous is copied.
	flat := t.reshapePlain(index, []int64{index.Numel()})
	since := t.moment()
	out := t.empty(m.Weight.DType, shape...)
	t.noteFused(since, steptime.Embedding, out.DType, float64(2*out.bytes()))
	t.release(flat)
	if n := t.record("Embedding", m.Weight); n != nil {
		index := t.save(n, index)
		n.gradient = func(g *Tensor) *Tensor { return t.embeddingBackward(g, index, m.Weight) }
		n.setOutputs(out)
	}
	t.done(indices)
	return Value{out}
}

// inputHook runs the forward hook of an embedding, if it has one:
// output.requires_grad_(True).
func (t *Torch) inputHook(m *Embedding, out Value) Value {
	if m.input && t.InputsRequireGrad {
		out.tensor.requiresGrad = true
	}
	return out
}

// ScaledEmbedding is the forward function of Gemma's embeddings, which multiplies the
// table's rows (GemmaTextScaledWordEmbedding, transformers/models/gemma/modeling_gemma.py).
func (t *Torch) ScaledEmbedding(indices X, m *Embedding, scale X) Value {
	return t.inputHook(m, t.Mul(t.rows(indices, m), scale))
}

// embeddingBackward is embedding_dense_backward: up to 3072 indices are
// summed straight into the table's gradient; more are sorted first
// (aten/src/ATen/native/cuda/Embedding.cu).
func (t *Torch) embeddingBackward(grad, index, weight *Tensor) *Tensor {
	indices := t.contiguousInput(index)
	dense := t.contiguousInput(grad)
	var out *Tensor
	since := t.moment()
	if indices.Numel() <= 3072 {
		out = t.empty(grad.DType, weight.Shape...)
	} else {
		out = t.embeddingSorted(dense, indices, weight)
	}
	t.noteFused(since, steptime.Fill, out.DType, float64(out.bytes()))
	t.kernel(steptime.EmbeddingBackward, out.DType, float64(2*grad.bytes()))
	t.release(dense, indices)
	return out
}

// embeddingSorted sorts the indices with their positions, and sums in that
// order.
func (t *Torch) embeddingSorted(grad, indices, weight *Tensor) *Tensor {
	n := indices.Numel()
	sorted, places := t.empty(indices.DType, n), t.empty(indices.DType, n)
	t.scratchSized(radixSortPairs(n, 64), t.empty(indices.DType, n)) // arange
	out := t.embeddingSegments(grad, n, weight)
	t.release(places, sorted)
	return out
}

// scratchWith allocates temporary memory for a call, then releases what the
// call used.
func (t *Torch) scratchWith(bytes int64, used ...*Tensor) {
	t.drop(t.allocate(bytes))
	t.release(used...)
}

// scratchSized is scratchWith of a size that depends on the card's kernels.
func (t *Torch) scratchSized(size func(Device) int64, used ...*Tensor) {
	t.drop(t.allocateSized(size))
	t.release(used...)
}

// embeddingSegments is embedding_backward_cuda_kernel: rows of one index are a
// segment, whose parts of 10 rows are summed first
// (aten/src/ATen/native/cuda/EmbeddingBackwardKernel.cu).
func (t *Torch) embeddingSegments(grad *Tensor, n int64, weight *Tensor) *Tensor {
	const rowsPerPart = 10
	out := t.empty(grad.DType, weight.Shape...)
	offsets, count := t.empty(Int64, n), t.empty(Int64)
	v := t.Version
	t.scratchSized(func(d Device) int64 { return d.uniqueByKey(v, n) }, t.empty(Int64, n)) // the keys are unused
	segments := min(n, weight.Shape[0])
	parts, partOffsets := t.empty(Int64, segments), t.empty(Int64, segments)
	t.scratchWith(t.exclusiveSum(segments))
	partCount := t.empty(Int64)
	most := n/rowsPerPart + segments
	starts := t.empty(Int64, most)
	if t.sumsAtomically(segments, most, weight.Shape[1]) {
		segmentOf := t.empty(Int64, most)
		if grad.DType != Float32 {
			t.release(t.empty(Float32, weight.Shape...)) // halves are summed in float32
		}
		t.release(segmentOf)
	} else {
		t.release(t.empty(Float32, most, weight.Shape[1]))
	}
	t.release(starts, partCount, partOffsets, parts, count, offsets)
	return out
}

// sumsAtomically reports whether parts are added to the table's gradient directly,
// which happens where segments are too few to keep the card busy. Recordings of 2.6
// and 2.8 never do so.
func (t *Torch) sumsAtomically(segments, parts, size int64) bool {
	const (
		warp        = 32
		maxBlock    = 1024
		blocksPerSM = 4
	)
	row := divUp(size, warp) * warp
	grid := divUp(segments*row, min(row, maxBlock))
	return parts > grid*4 && !t.Version.Before(2, 11) &&
		t.is(func(d Device) bool { return grid < int64(d.SMs)*blocksPerSM })
}
