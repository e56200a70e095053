package models

import "memorymark/internal/torch"

// t5Pair is something for attention to the stack itself and for that to the
// encoder: the masks, and the position biases that a stack's first layer makes
// and the others share.
type t5Pair struct{ self, cross *torch.Var }

// block is T5Block.
func (m *t5) block(t *torch.Torch, b *t5Block, x, encoded *torch.Var, masks, biases t5Pair, cache encoderDecoderCache) torch.Value {
	f := t.Enter(x)
	hidden := f.Let(x)
	weights := f.Let(torch.Value{}) // "_"
	out, w := m.attentionLayer(t, b.self, hidden, nil, masks.self, biases.self, cache.self)
	hidden.Set(out)
	weights.Set(w)
	if b.cross != nil {
		out, w = m.attentionLayer(t, b.cross, hidden, encoded, masks.cross, biases.cross, cache.cross)
		hidden.Set(out)
		weights.Set(w)
	}
	hidden.Set(m.feedForward(t, b, hidden))
	return f.Return(hidden)
}

// checkpointed is a block under checkpointing. The biases it makes when it
// first runs are results; those of the second run go with it. All its
// arguments are positional, so they die in their order.
func (m *t5) checkpointed(t *torch.Torch, b *t5Block, x, encoded *torch.Var, masks, biases t5Pair) torch.Value {
	var made [2]torch.Value
	first := true
	block := func(crossBias *torch.Var, args []*torch.Var) torch.Value {
		f := t.Enter()
		own := t5Pair{f.Let(args[2]), f.Let(crossBias)}
		out := m.block(t, b, args[0], args[3], t5Pair{args[1], args[4]}, own, encoderDecoderCache{})
		if first {
			made[0], made[1], first = f.Keep(own.self), f.Keep(own.cross), false
		}
		f.End()
		return out
	}
	if encoded == nil {
		encoded = &torch.Var{}
	}
	out := t.Checkpoint(block, biases.cross, x, masks.self, biases.self, encoded, masks.cross)
	biases.self.Set(made[0])
	biases.cross.Set(made[1])
	return out
}

// attentionLayer is T5LayerSelfAttention, and with encoded states
// T5LayerCrossAttention, which has a name of its own for its sum.
func (m *t5) attentionLayer(t *torch.Torch, a *t5Attention, hidden, encoded, mask, bias *torch.Var,
	cache *dynamicCache,
) (out, weights torch.Value) {
	index, name := 0, "SelfAttention"
	if encoded != nil {
		index, name = 1, "EncDecAttention"
	}
	f := t.Enter(hidden).In("layer", index)
	normed := f.Let(t5Norm(t, hidden, a.norm))
	out, weights = m.attention(t, a, name, normed, encoded, mask, bias, cache)
	attended, w := f.Let(out), f.Let(weights)
	sum := t.Add(hidden, t.Dropout(attended, m.cfg.Dropout, m.train))
	if encoded == nil {
		attended.Set(sum)
		sum = f.Keep(attended)
	}
	weights = f.Keep(w)
	f.End()
	return sum, weights
}

// attention is T5Attention. It makes the position bias if there is none yet:
// of a stack's own attention from the distances, of attention to the encoder
// zeros.
func (m *t5) attention(t *torch.Torch, a *t5Attention, name string, hidden, encoded, mask, bias *torch.Var,
	cache *dynamicCache,
) (out, weights torch.Value) {
	f := t.Enter(hidden).In(name)
	project := func(x *torch.Var, w *torch.Linear) *torch.Var {
		s := x.Tensor().Shape
		return f.Let(t.Transpose(t.View(t.Linear(x, w), s[0], s[1], -1, m.cfg.HeadSize), 1, 2))
	}
	current := hidden
	if encoded != nil {
		current = encoded
	}
	q, k, v := project(hidden, a.q), project(current, a.k), project(current, a.v)
	cache.update(t, k, v)
	if bias.Tensor() == nil {
		length, keys := q.Tensor().Dim(2), k.Tensor().Dim(2)
		if a.relativeBias != nil {
			bias.Set(computeBias(t, a, length, keys))
		} else {
			bias.Set(t.Full(q.Tensor().DType, 1, m.cfg.Heads, length, keys))
			if m.checkpoints {
				bias.Tensor().RequireGrad()
			}
		}
	}
	var w torch.Value
	if m.eager {
		out, w = m.eagerAttention(t, q, k, v, mask, bias)
	} else {
		out = m.sdpaAttention(t, q, k, v, mask, bias, a.causal)
	}
	attended, kept := f.Let(out), f.Let(w)
	s := hidden.Tensor().Shape
	attended.Set(t.Contiguous(t.Reshape(attended, s[0], s[1], -1)))
	attended.Set(t.Linear(attended, a.o))
	out, weights = f.Keep(attended), f.Keep(kept)
	f.End()
	return out, weights
}

// computeBias is compute_bias: a learned number a head for every bucket of
// distances.
func computeBias(t *torch.Torch, a *t5Attention, length, keys int64) torch.Value {
	f := t.Enter()
	context := f.Let(t.Shift(t.Unsqueeze(t.Arange(length), 1)))
	memory := f.Let(t.Unsqueeze(t.Arange(keys), 0))
	relative := f.Let(t.Integers(memory, context))
	bucket := f.Let(relativePositionBucket(t, relative, !a.causal))
	values := f.Let(t.Embedding(bucket, a.relativeBias))
	values.Set(t.Unsqueeze(t.Permute(values, 2, 0, 1), 0))
	return f.Return(values)
}

// relativePositionBucket is _relative_position_bucket.
func relativePositionBucket(t *torch.Torch, relative *torch.Var, bidirectional bool) torch.Value {
	f := t.Enter(relative)
	position := f.Let(relative)
	buckets := f.Let(torch.Value{})
	if bidirectional {
		later := t.To(t.Compare(position), torch.Int64)
		buckets.Set(t.Integers(t.Integers(later))) // 0 + later * num_buckets
		position.Set(t.Integers(position))         // abs
	} else {
		position.Set(t.Integers(t.Integers(position, t.FullLike(position)))) // -min(position, 0)
	}
	small := f.Let(t.Compare(position))
	// max_exact + (log(position / max_exact) / log(...) * (num_buckets - max_exact)).long()
	logs := t.Floats(t.Floats(t.To(position, torch.Float32)))
	large := f.Let(t.Integers(t.To(t.Floats(t.Floats(logs)), torch.Int64)))
	large.Set(t.Integers(large, t.FullLike(large))) // min(large, num_buckets - 1)
	chosen := t.Integers(small, position, large)
	if bidirectional {
		t.Drop(chosen) // added in place
	} else {
		buckets.Set(t.Integers(chosen)) // 0 + chosen
	}
	return f.Return(buckets)
}

// sdpaAttention is sdpa_attention_forward with a position bias
// (transformers/integrations/sdpa_attention.py).
func (m *t5) sdpaAttention(t *torch.Torch, q, k, v, mask, bias *torch.Var, causal bool) torch.Value {
	f := t.Enter()
	causal = causal && mask.Tensor() == nil && q.Tensor().Dim(2) > 1
	masked := f.Let(positionBiasMask(t, q, k, mask, bias, causal))
	out := f.Let(t.Attention(q, k, v, masked, m.dropout(), false, false))
	out.Set(t.Contiguous(t.Transpose(out, 1, 2)))
	return f.Return(out)
}

// positionBiasMask is create_position_bias_mask: the bias, and the smallest
// number where a key is masked or comes after its query.
func positionBiasMask(t *torch.Torch, q, k, mask, bias *torch.Var, causal bool) torch.Value {
	f := t.Enter()
	switch {
	case mask.Tensor() != nil:
		return f.Return(t.WhereScalar(mask, bias))
	case !causal:
		return f.Return(bias)
	}
	length, keys := q.Tensor().Dim(2), k.Tensor().Dim(2)
	seen := f.Let(t.Compare(t.Unsqueeze(t.Arange(length), 1), t.Unsqueeze(t.Arange(keys), 0)))
	seen.Set(t.View(seen, 1, 1, length, keys))
	return f.Return(t.WhereScalar(seen, bias))
}

// eagerAttention is eager_attention_forward; the weights are a result too.
func (m *t5) eagerAttention(t *torch.Torch, q, k, v, mask, bias *torch.Var) (out, weights torch.Value) {
	f := t.Enter()
	w := f.Let(t.Scale(t.MatMul(q, t.Transpose(k, 2, 3))))
	w.Set(t.Add(w, bias))
	if mask.Tensor() != nil {
		w.Set(t.Add(w, mask))
	}
	w.Set(t.Softmax(w, torch.NoDType))
	w.Set(t.Dropout(w, m.cfg.Dropout, m.train))
	attended := f.Let(t.MatMul(w, v))
	attended.Set(t.Contiguous(t.Transpose(attended, 1, 2)))
	out, weights = f.Keep(attended), f.Keep(w)
	f.End()
	return out, weights
}

// dropout is what attention drops: nothing in evaluation.
func (m *t5) dropout() float64 {
	if !m.train {
		return 0
	}
	return m.cfg.Dropout
}

// feedForward is T5LayerFF.
func (m *t5) feedForward(t *torch.Torch, b *t5Block, hidden *torch.Var) torch.Value {
	index := 1
	if b.cross != nil {
		index = 2
	}
	f := t.Enter(hidden).In("layer", index)
	forwarded := f.Let(t5Norm(t, hidden, b.feedForwardNorm))
	forwarded.Set(m.dense(t, b, forwarded))
	return f.Return(t.Add(hidden, t.Dropout(forwarded, m.cfg.Dropout, m.train)))
}

// dense is T5DenseActDense and T5DenseGatedActDense.
func (m *t5) dense(t *torch.Torch, b *t5Block, x *torch.Var) torch.Value {
	f := t.Enter(x).In("DenseReluDense")
	hidden := f.Let(x)
	if b.wi1 != nil {
		gate := f.Let(m.act(t, t.Linear(hidden, b.wi0)))
		linear := f.Let(t.Linear(hidden, b.wi1))
		hidden.Set(t.Mul(gate, linear))
	} else {
		hidden.Set(t.Linear(hidden, b.wi0))
		hidden.Set(m.act(t, hidden))
	}
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.train))
	hidden.Set(t.To(hidden, b.wo.Weight.DType)) // under autocast the two differ
	hidden.Set(t.Linear(hidden, b.wo))
	return f.Return(hidden)
}

// t5Norm is T5LayerNorm: no mean, no bias, in float32.
func t5Norm(t *torch.Torch, x *torch.Var, m *torch.RMSNorm) torch.Value {
	f := t.Enter(x)
	hidden := f.Let(x)
	variance := f.Let(t.MeanLast(t.Pow(t.To(hidden, torch.Float32))))
	hidden.Set(t.Mul(hidden, t.Rsqrt(t.Shift(variance))))
	if m.Weight.DType.IsHalf() {
		hidden.Set(t.To(hidden, m.Weight.DType))
	}
	return f.Return(t.Mul(torch.Borrow(m.Weight), hidden))
}
