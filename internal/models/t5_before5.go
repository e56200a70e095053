package models

import "memorymark/internal/torch"

// This file is T5 as transformers 4 has it: attention is always eager, masks are
// floats and become part of the position bias, and tuples of results live on.

// isOf4 reports whether the model is one of transformers 4.
func (m *t5) isOf4() bool { return m.versions.Transformers.Before(5, 0) }

// stack4 is T5Stack.
func (m *t5) stack4(t *torch.Torch, s *t5Stack, ids torch.X, encoded *torch.Var, p padding, cache encoderDecoderCache) torch.Value {
	f := t.Enter().In(s.name)
	given, encoderMask := f.Let(torch.Value{}), f.Let(torch.Value{})
	inputs := f.Let(t.In("embed_tokens", func() torch.Value { return t.Embedding(ids, m.shared) }))
	b, length, dtype := inputs.Tensor().Dim(0), inputs.Tensor().Dim(1), inputs.Tensor().DType
	positions := f.Let(t.Arange(length))
	if encoded != nil || p.mask == nil { // the decoder is given none
		given.Set(t.Full(torch.Float32, b, length))
	} else {
		given.Set(torch.Borrow(p.mask))
	}
	masks := t5Pair{f.Let(torch.Value{}), f.Let(torch.Value{})}
	if encoded == nil {
		masks.self.Set(invertedMask4(t, given, dtype))
	} else {
		masks.self.Set(legacyMask{eager: true, triangle: true}.update(t, inputs, positions, given.Tensor()))
		if p.mask != nil {
			encoderMask.Set(torch.Borrow(p.mask))
		} else {
			encoderMask.Set(t.Full(torch.Int64, b, encoded.Tensor().Dim(1)))
		}
		masks.cross.Set(invertedMask4(t, encoderMask, dtype))
	}
	bias := t5Pair{self: f.Let(torch.Value{}), cross: f.Let(torch.Value{})}
	hidden := f.Let(t.Dropout(inputs, m.cfg.Dropout, m.train))
	for i := range s.blocks {
		b, g := &s.blocks[i], t.Enter().In("block", i)
		if m.checkpoints {
			hidden.Set(g.Return(m.checkpointed4(t, b, hidden, encoded, masks, bias, positions)))
		} else {
			hidden.Set(g.Return(m.block4(t, b, hidden, encoded, masks, bias, positions, cache)))
		}
	}
	for _, x := range []*torch.Var{bias.cross, bias.self, hidden} {
		f.Let(x) // in layer_outputs, a tuple
	}
	hidden.Set(t.In("final_layer_norm", func() torch.Value { return t5Norm(t, hidden, s.norm) }))
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.train))
	return f.Return(hidden)
}

// block4 is T5Block.
func (m *t5) block4(t *torch.Torch, b *t5Block, x, encoded *torch.Var, masks, biases t5Pair, positions *torch.Var, cache encoderDecoderCache) torch.Value {
	f := t.Enter(x)
	hidden := f.Let(x)
	attended := f.Let(m.attentionLayer4(t, b.self, hidden, nil, masks.self, biases.self, positions, cache.self))
	hidden.Set(attended)
	if b.cross != nil {
		g := t.Enter()
		g.Let(lastPosition(t, positions)) // query_length=cache_position[-1] + 1
		crossed := f.Let(g.Return(m.attentionLayer4(t, b.cross, hidden, encoded, masks.cross, biases.cross, nil, cache.cross)))
		hidden.Set(crossed)
	}
	hidden.Set(m.feedForward(t, b, hidden))
	return f.Return(hidden)
}

// lastPosition is cache_position[-1] + 1.
func lastPosition(t *torch.Torch, positions *torch.Var) torch.Value {
	return t.Integers(t.Select(positions, 0))
}

// checkpointed4 is a block under checkpointing (see checkpointed).
func (m *t5) checkpointed4(t *torch.Torch, b *t5Block, x, encoded *torch.Var, masks, biases t5Pair, positions *torch.Var) torch.Value {
	var made [2]torch.Value
	first := true
	block := func(in []*torch.Var) torch.Value {
		f := t.Enter()
		own := t5Pair{f.Let(in[2]), f.Let(in[5])}
		out := m.block4(t, b, in[0], in[3], t5Pair{in[1], in[4]}, own, in[6], encoderDecoderCache{})
		if first {
			made[0], made[1], first = f.Keep(own.self), f.Keep(own.cross), false
		}
		f.End()
		return out
	}
	if encoded == nil {
		encoded = &torch.Var{}
	}
	out := t.CheckpointInputs(block, x, masks.self, biases.self, encoded, masks.cross, biases.cross, positions)
	biases.self.Set(made[0])
	biases.cross.Set(made[1])
	return out
}

// attentionLayer4 is T5LayerSelfAttention, and with encoded states
// T5LayerCrossAttention.
func (m *t5) attentionLayer4(t *torch.Torch, a *t5Attention, hidden, encoded, mask, bias, positions *torch.Var, cache *dynamicCache) torch.Value {
	index, name := 0, "SelfAttention"
	if encoded != nil {
		index, name = 1, "EncDecAttention"
	}
	f := t.Enter(hidden).In("layer", index)
	normed := f.Let(t5Norm(t, hidden, a.norm))
	g := t.Enter().In(name)
	attended := f.Let(g.Return(m.attention4(t, a, normed, encoded, mask, bias, positions, cache)))
	return f.Return(t.Add(hidden, t.Dropout(attended, m.cfg.Dropout, m.train)))
}

// attention4 is T5Attention. The first of a stack makes the position bias, with
// the mask in it.
func (m *t5) attention4(t *torch.Torch, a *t5Attention, hidden, encoded, mask, bias, positions *torch.Var, cache *dynamicCache) torch.Value {
	f := t.Enter(hidden)
	split := func(x *torch.Var) {
		s := x.Tensor().Shape
		x.Set(t.Transpose(t.View(x, s[0], s[1], -1, m.cfg.HeadSize), 1, 2))
	}
	current := hidden
	if encoded != nil {
		current = encoded
	}
	q := f.Let(t.Linear(hidden, a.q))
	split(q)
	k, v := f.Let(t.Linear(current, a.k)), f.Let(t.Linear(current, a.v))
	split(k)
	split(v)
	cache.update(t, k, v)
	scores := f.Let(t.MatMul(q, t.Transpose(k, 3, 2)))
	if bias.Tensor() == nil {
		m.makeBias4(t, f, a, scores, mask, bias, positions)
	}
	t.AddInPlace(scores, bias)
	weights := f.Let(t.To(t.Softmax(t.To(scores, torch.Float32), torch.NoDType), scores.Tensor().DType))
	weights.Set(t.Dropout(weights, m.cfg.Dropout, m.train))
	attended := f.Let(t.MatMul(weights, v))
	attended.Set(t.Contiguous(t.Transpose(attended, 1, 2)))
	s := hidden.Tensor().Shape
	attended.Set(t.View(attended, s[0], s[1], -1))
	attended.Set(t.Linear(attended, a.o))
	return f.Return(attended)
}

// makeBias4 makes the position bias. Some names on the way stay until attention
// returns.
func (m *t5) makeBias4(t *torch.Torch, f *torch.Frame, a *t5Attention, scores, mask, bias, positions *torch.Var) {
	length, keys := scores.Tensor().Dim(2), scores.Tensor().Dim(3)
	if positions != nil {
		f.Let(lastPosition(t, positions)) // real_seq_length
	}
	if a.relativeBias == nil {
		bias.Set(t.Full(scores.Tensor().DType, 1, m.cfg.Heads, length, keys))
		if m.checkpoints {
			bias.Tensor().RequireGrad()
		}
	} else {
		bias.Set(computeBias4(t, a, positions, keys))
		bias.Set(sliced(t, bias))
	}
	causal := f.Let(sliced(t, mask)) // mask[:, :, :, : key_states.shape[-2]]
	bias.Set(t.Add(bias, causal))
}

// sliced is x[:, :, :, :].
func sliced(t *torch.Torch, x *torch.Var) torch.Value {
	out := t.Slice(x, 0, 0, x.Tensor().Dim(0))
	for d := 1; d < 4; d++ {
		out = t.Slice(out, d, 0, x.Tensor().Dim(d))
	}
	return out
}

// computeBias4 is compute_bias with positions.
func computeBias4(t *torch.Torch, a *t5Attention, positions *torch.Var, keys int64) torch.Value {
	f := t.Enter()
	context := f.Let(t.Unsqueeze(positions, 1))
	return f.Return(biasOf(t, f, a, context, keys))
}
