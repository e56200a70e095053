package torch

import "slices"

// mathAttention is _scaled_dot_product_attention_math: plain operators, each
// with its node, on float32 copies of half types
// (aten/src/ATen/native/transformers/attention.cpp).
func (t *Torch) mathAttention(a *attention) *Tensor {
	queries, keys, values := t.toFloat32(a.q), t.toFloat32(a.k), t.toFloat32(a.v)
	q := t.Scale(Borrow(queries)).tensor
	bias := t.retainMaybe(a.bias)
	if a.causal {
		bias = t.causalBias(q.Dim(2), keys.Dim(2), q.DType)
	}
	heads := [2]int64{keys.Dim(1), values.Dim(1)} // fewer are broadcast
	if a.gqa {
		heads = [2]int64{q.Dim(1), q.Dim(1)}
	}
	k, v := t.repeatHeads(keys, heads[0]), t.repeatHeads(values, heads[1])
	kt := t.transpose(k, -2, -1)
	scaled := t.Scale(Value{kt}).tensor
	scores := t.matmul(q, scaled)
	t.release(scaled)
	if bias != nil {
		t.addInPlace(scores, bias)
	}
	weights := t.safeSoftmax(scores)
	t.release(scores)
	if a.dropout > 0 {
		weights = t.Dropout(Value{weights}, a.dropout, true).tensor
	}
	// The weights are a second result, of the same type, and unused.
	lowered := t.castPlain(weights, a.q.DType)
	product := t.matmul(weights, v)
	out := t.castPlain(product, a.q.DType)
	t.release(product, weights, k, v, q, bias, values, keys, queries, lowered)
	return out
}

// toFloat32 returns a half tensor in float32, or the tensor itself.
func (t *Torch) toFloat32(x *Tensor) *Tensor {
	if x.DType.IsHalf() {
		return t.to(x, Float32)
	}
	return t.retain(x)
}

// castPlain returns a tensor in another type, or the tensor itself, outside the
// graph.
func (t *Torch) castPlain(x *Tensor, dtype DType) *Tensor {
	if x.DType == dtype {
		return t.retain(x)
	}
	return t.to(x, dtype)
}

func (t *Torch) retainMaybe(x *Tensor) *Tensor {
	if x == nil {
		return nil
	}
	return t.retain(x)
}

// causalBias is ones(queries, keys).tril() as numbers to add.
func (t *Torch) causalBias(queries, keys int64, dtype DType) *Tensor {
	ones := t.empty(Bool, queries, keys)
	lower := t.empty(Bool, queries, keys)
	t.release(ones)
	bias := t.additiveMask(lower, dtype)
	t.release(lower)
	return bias
}

// repeatHeads is repeat_interleave of the heads, if there are fewer of them
// (pre_process_group_query_attention_input; Repeat.cpp).
func (t *Torch) repeatHeads(x *Tensor, heads int64) *Tensor {
	if x.Dim(1) == heads {
		return t.retain(x)
	}
	b, h, s, d := x.Dim(0), x.Dim(1), x.Dim(2), x.Dim(3)
	grouped := t.Unsqueeze(Borrow(x), 2)
	wide := t.Expand(grouped, b, h, heads/h, s, d).tensor
	copied := t.clone(wide)
	out := t.view(copied, b, heads, s, d)
	t.release(copied, wide)
	return out
}

// safeSoftmax is _safe_softmax: fully masked rows become zeros, in place.
func (t *Torch) safeSoftmax(scores *Tensor) *Tensor {
	out := t.softmax(scores, scores.DType)
	masked := t.empty(Bool, scores.Shape...)
	rows := slices.Clone(scores.Shape)
	rows[len(rows)-1] = 1
	maskedRows := t.empty(Bool, rows...)
	zero := t.empty(out.DType)
	t.release(zero, maskedRows, masked)
	return out
}
