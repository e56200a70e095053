package torch

// This file is FlashAttention 2 as PyTorch carries it
// (aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp).

// flashAttention pads sizes that are not multiples of 8, and slices the padding
// off the result (scaled_dot_product_attention, pad_last_dim).
func (t *Torch) flashAttention(a *attention) *Tensor {
	size := a.q.Dim(3)
	pad := (8 - size%8) % 8
	if pad == 0 {
		return t.flashForward(a)
	}
	padded := *a
	padded.q, padded.k, padded.v = t.padLast(a.q, pad), t.padLast(a.k, pad), t.padLast(a.v, pad)
	full := t.flashForward(&padded)
	t.release(padded.v, padded.k, padded.q)
	out := t.slice(full, 3, 0, size)
	t.release(full)
	return out
}

// flashForward is _scaled_dot_product_flash_attention (mha_fwd): the result
// laid out like the queries, the logarithms of the sums, partial results if
// keys are split over blocks, and the state of the random numbers.
func (t *Torch) flashForward(a *attention) *Tensor {
	b, h, s := a.q.Dim(0), a.q.Dim(1), a.q.Dim(2)
	out := t.emptyLike(a.q, a.q.DType)
	sums := t.empty(Float32, b, h, s)
	var splitSums, splitOut *Tensor
	if n := t.flashSplits(a); n > 1 {
		splitSums = t.empty(Float32, n, b, h, s)
		splitOut = t.empty(Float32, n, b, h, s, flashSize(a.q.Dim(3)))
	}
	state, unused := t.flashState(a.dropout)
	if t.Version.Before(2, 8) { // as in recordings of 2.6
		splitSums, splitOut = splitOut, splitSums
	}
	t.release(splitSums, splitOut)
	if n := t.record("ScaledDotProductFlashAttention", a.q, a.k, a.v); n != nil {
		k, q, v := t.save(n, a.k), t.save(n, a.q), t.save(n, a.v)
		t.save(n, sums)
		o := t.save(n, out)
		if state != nil {
			t.save(n, state)
			t.save(n, unused)
		}
		n.backward = func(g []*Tensor) []*Tensor { return t.flashBackward(g[0], q, k, v, o) }
		n.setOutputs(out)
	}
	t.release(sums, state, unused)
	return out
}

// flashState is the state of the random number generator, which 2.6 keeps on
// the CPU, as in its recordings.
func (t *Torch) flashState(dropout float64) (state, unused *Tensor) {
	if t.Version.Before(2, 8) {
		return nil, nil
	}
	state, unused = t.empty(Int64, 2), t.empty(Int64)
	if dropout > 0 {
		state = t.replace(state, t.empty(Int64, 2))
	}
	return state, unused
}

// flashSize is head_size_rounded.
func flashSize(d int64) int64 {
	if d <= 128 {
		return divUp(d, 32) * 32
	}
	return divUp(d, 64) * 64
}

// flashSplits is set_params_splitkv and num_splits_heuristic: into how many
// parts keys are split where there are too few blocks for the card.
func (t *Torch) flashSplits(a *attention) int64 {
	if a.dropout > 0 {
		return 1
	}
	block := int64(64)
	switch d := a.q.Dim(3); {
	case d <= 64:
		block = 256
	case d <= 128:
		block = 128
	}
	columns := divUp(a.k.Dim(2), block)
	rows := a.q.Dim(0) * a.q.Dim(1) * divUp(a.q.Dim(2), 64)
	return t.ask(func(d Device) int64 { return d.flashSplits(rows, columns) })
}

// flashSplits returns how many blocks share the keys of these rows.
func (d Device) flashSplits(rows, columns int64) int64 {
	sms := int64(d.SMs) * 2
	if float32(rows) >= 0.8*float32(sms) {
		return 1
	}
	most := min(128, sms, columns)
	eligible := func(n int64) bool { return n == 1 || divUp(columns, n) != divUp(columns, n-1) }
	efficiency := func(n int64) float32 { return float32(rows*n) / float32(sms) / float32(divUp(rows*n, sms)) }
	best := float32(0)
	for n := int64(1); n <= most; n++ {
		if eligible(n) {
			best = max(best, efficiency(n))
		}
	}
	for n := int64(1); n <= most; n++ {
		if eligible(n) && float64(efficiency(n)) >= 0.85*float64(best) {
			return n
		}
	}
	return 1
}

// flashBackward is _flash_attention_backward (mha_bwd): the gradients, the row
// sums with rows padded to 128, the queries' gradient in float32, and with
// grouped heads the gradients of keys and values for every head, which are
// summed.
func (t *Torch) flashBackward(grad, q, k, v, out *Tensor) []*Tensor {
	b, h, s, d := q.Dim(0), q.Dim(1), q.Dim(2), q.Dim(3)
	dense, denseOut := t.contiguousHeads(grad), t.contiguousHeads(out)
	dq, dk, dv := t.emptyLike(q, q.DType), t.emptyLike(k, k.DType), t.emptyLike(v, v.DType)
	rows := divUp(s, 128) * 128
	sums := t.empty(Float32, b, h, rows)
	accumulated := t.empty(Float32, b, rows, h, flashSize(d))
	var allK, allV *Tensor
	if groups := h / k.Dim(1); groups != 1 {
		allK, allV = t.empty(k.DType, b, k.Dim(2), h, d), t.empty(v.DType, b, v.Dim(2), h, d)
	}
	t.release(allV, allK, accumulated, sums, denseOut, dense)
	return []*Tensor{dq, dk, dv}
}

// contiguousHeads is x.transpose(1, 2).contiguous().
func (t *Torch) contiguousHeads(x *Tensor) *Tensor {
	view := t.alias(x, []int64{x.Shape[0], x.Shape[2], x.Shape[1], x.Shape[3]},
		[]int64{x.stride[0], x.stride[2], x.stride[1], x.stride[3]})
	out := t.contiguousInput(view)
	t.release(view)
	return out
}
