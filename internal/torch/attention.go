package torch

// This file is scaled_dot_product_attention: which kernel it picks, and what
// each kernel allocates (aten/src/ATen/native/transformers/cuda).

// Attention is torch.nn.functional.scaled_dot_product_attention on
// [batch, heads, length, size] queries, keys and values.
func (t *Torch) Attention(q, k, v X, dropout float64, causal bool) Value {
	out := t.efficientAttention(read(q), read(k), read(v))
	t.done(q, k, v)
	return Value{out}
}

// efficientAttention is _scaled_dot_product_efficient_attention: the result
// in [batch, length, heads, size] memory and the logarithms of the sums, whose
// rows are padded to 32 (attention.cu). Seeds are on the CPU.
func (t *Torch) efficientAttention(q, k, v *Tensor) *Tensor {
	b, h, s, d := q.Shape[0], q.Shape[1], q.Shape[2], v.Shape[3]
	out := t.heads(b, h, s, d, q.DType)
	if t.needsGrad(q, k, v) {
		lse := t.empty(Float32, b, h, divUp(s, 32)*32)
		n := t.record("ScaledDotProductEfficientAttention", q, k, v)
		for _, x := range []*Tensor{k, q, v, lse, out} {
			t.save(n, x)
		}
		n.backward = func(g []*Tensor) []*Tensor { return t.efficientBackward(g[0], q, k, v) }
		n.made(out)
		t.release(lse)
	} else {
		t.drop(t.allocate(0))
	}
	return out
}

// heads makes a [batch, heads, length, size] tensor in the memory order of
// projections.
func (t *Torch) heads(b, h, s, d int64, dtype DType) *Tensor {
	return t.emptyStrided(dtype, []int64{b, h, s, d}, []int64{s * h * d, d, h * d, 1})
}

// efficientBackward is _efficient_attention_backward: the three gradients,
// then the row sums of gradient times result (in float32 through a product of
// full size), then a workspace of about one query in float32
// (mem_eff_attention/kernel_backward.h, workspace_size).
func (t *Torch) efficientBackward(grad, q, k, v *Tensor) []*Tensor {
	b, h, s, d := q.Shape[0], q.Shape[1], q.Shape[2], q.Shape[3]
	dq := t.heads(b, h, s, d, q.DType)
	dk := t.heads(b, h, k.Shape[2], d, k.DType)
	dv := t.heads(b, h, v.Shape[2], v.Shape[3], v.DType)
	var delta *Tensor
	if q.DType == Float32 {
		product := t.heads(b, h, s, v.Shape[3], Float32)
		sums := t.empty(Float32, b, s, h)
		delta = t.empty(Float32, b, h, s)
		t.release(sums, product)
	} else {
		delta = t.empty(Float32, b, h, s)
	}
	blockI, blockJ := int64(64), int64(64)
	rows := divUp(s, blockI) * divUp(d, blockJ) * (4 + blockI*blockJ)
	scratch := t.allocate(b * h * divUp(rows, 4) * 4 * 4)
	t.release(delta)
	t.drop(scratch)
	return []*Tensor{dq, dk, dv}
}
