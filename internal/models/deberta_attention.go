package models

import "memorymark/internal/torch"

// This file is DeBERTa's disentangled attention: scores of contents, of contents
// with positions, and of positions with contents
// (transformers/models/deberta_v2/modeling_deberta_v2.py).

// layer is DebertaV2Layer.forward.
func (m *deberta) layer(t *torch.Torch, l *debertaLayer, hidden, mask, distances, relative *torch.Var) torch.Value {
	f := t.Enter(hidden)
	attended := f.Let(m.attention(t, l, hidden, mask, distances, relative))
	middle := f.Let(t.In("intermediate", func() torch.Value {
		g := t.Enter()
		x := g.Let(t.Linear(attended, l.intermediate))
		x.Set(m.act(t, x))
		return g.Return(x)
	}))
	return f.Return(f.Let(m.project(t, middle, attended, l.output, l.outputNorm)))
}

// attention is DebertaV2Attention.forward.
func (m *deberta) attention(t *torch.Torch, l *debertaLayer, hidden, mask, distances, relative *torch.Var) torch.Value {
	f := t.Enter().In("attention")
	context := f.Let(m.selfAttention(t, l, hidden, mask, distances, relative))
	return f.Return(f.Let(m.project(t, context, hidden, l.attentionOutput, l.attentionNorm)))
}

// project is DebertaV2SelfOutput and DebertaV2Output.
func (m *deberta) project(t *torch.Torch, x, residual *torch.Var, dense *torch.Linear, norm *torch.LayerNorm) torch.Value {
	f := t.Enter().In("output")
	h := f.Let(t.Linear(x, dense))
	h.Set(t.Dropout(h, m.cfg.HiddenDropout, m.run.Train))
	h.Set(t.LayerNorm(t.Add(h, residual), norm))
	return f.Return(h)
}

// heads is transpose_for_scores: a matrix for each head of each sample.
func (m *deberta) heads(t *torch.Torch, x torch.Value) torch.Value {
	f := t.Enter()
	projected := f.Let(x)
	b, s := projected.Tensor().Dim(0), projected.Tensor().Dim(1)
	projected.Set(t.View(projected, b, s, m.cfg.Heads, -1))
	apart := t.Contiguous(t.Permute(projected, 0, 2, 1, 3))
	return f.Return(t.View(apart, -1, s, m.cfg.HiddenSize/m.cfg.Heads))
}

// selfAttention is DisentangledSelfAttention.forward.
func (m *deberta) selfAttention(t *torch.Torch, l *debertaLayer, hidden, given, distances, embeddings *torch.Var) torch.Value {
	f := t.Enter().In("self")
	mask, relative := f.Let(given), f.Let(embeddings)
	q := f.Let(m.heads(t, t.Linear(hidden, l.query)))
	k := f.Let(m.heads(t, t.Linear(hidden, l.key)))
	v := f.Let(m.heads(t, t.Linear(hidden, l.value)))
	bias := f.Let(torch.Value{})
	// The scale is a tensor on the host.
	scores := f.Let(t.BMM(q, t.Scale(t.Transpose(k, -1, -2))))
	if m.relative != nil {
		relative.Set(t.Dropout(relative, m.cfg.HiddenDropout, m.run.Train))
		bias.Set(m.positionBias(t, l, q, k, distances, relative))
	}
	if bias.Tensor() != nil {
		scores.Set(t.Add(scores, bias))
	}
	s := hidden.Tensor().Dim(1)
	scores.Set(t.View(scores, -1, m.cfg.Heads, s, s))
	mask.Set(t.To(mask, torch.Bool))
	scores.Set(t.MaskedFill(scores, t.Compare(mask)))
	weights := f.Let(t.Softmax(scores, torch.NoDType))
	weights.Set(t.Dropout(weights, m.cfg.AttentionDropout, m.run.Train))
	context := f.Let(t.BMM(t.View(weights, -1, s, s), v))
	context.Set(t.Contiguous(t.Permute(t.View(context, -1, m.cfg.Heads, s, m.cfg.HiddenSize/m.cfg.Heads), 0, 2, 1, 3)))
	context.Set(t.View(context, -1, s, m.cfg.HiddenSize))
	return f.Return(context)
}

// positionBias is disentangled_attention_bias. Keys and queries of distances are
// those of all samples, so they are repeated.
func (m *deberta) positionBias(t *torch.Torch, l *debertaLayer, q, k, distances, relative *torch.Var) torch.Value {
	f := t.Enter()
	relative = f.Let(t.Unsqueeze(t.Slice(relative, 1, 0, relative.Tensor().Dim(1)), 0)) // rel_embeddings[0 : att_span * 2, :]
	batch := q.Tensor().Dim(0) / m.cfg.Heads
	repeated := func(w *torch.Linear) torch.Value { return t.Tile(m.heads(t, t.Linear(relative, w)), batch) }
	queries, keys := f.Let(torch.Value{}), f.Let(torch.Value{})
	positionKey, positionQuery := l.positionKey, l.positionQuery
	if m.cfg.ShareKey {
		queries.Set(repeated(l.query))
		keys.Set(repeated(l.key))
	} else {
		if positionKey != nil {
			keys.Set(repeated(positionKey))
		}
		if positionQuery != nil {
			queries.Set(repeated(positionQuery))
		}
	}
	score := f.Let(torch.Value{})
	add := func(part torch.Value) {
		if score.Tensor() == nil {
			score.Set(t.Shift(part)) // 0 + part
		} else {
			t.AddInPlace(score, part)
		}
	}
	toPosition, toPositionAt := f.Let(torch.Value{}), f.Let(torch.Value{})
	if m.cfg.attends("c2p") {
		toPosition.Set(t.BMM(q, t.Transpose(keys, -1, -2)))
		toPositionAt.Set(t.Integers(t.Integers(distances))) // clamp(relative_pos + att_span)
		toPosition.Set(m.gathered(t, toPosition, toPositionAt))
		add(t.Scale(toPosition))
	}
	toContentAt, toContent := f.Let(torch.Value{}), f.Let(torch.Value{})
	if m.cfg.attends("p2c") {
		toContentAt.Set(t.Integers(t.Integers(t.Integers(distances)))) // clamp(-r_pos + att_span)
		toContent.Set(t.BMM(k, t.Transpose(queries, -1, -2)))
		toContent.Set(t.Transpose(m.gathered(t, toContent, toContentAt), -1, -2))
		add(t.Scale(toContent))
	}
	return f.Return(score)
}

// gathered picks the score of each distance.
func (m *deberta) gathered(t *torch.Torch, scores, at *torch.Var) torch.Value {
	length := at.Tensor().Dim(-1)
	return t.Gather(scores, t.Expand(t.Squeeze(at, 0), scores.Tensor().Dim(0), length, length))
}

// distances is build_relative_position: of every query from every key, in
// logarithmic buckets.
func (m *deberta) distances(t *torch.Torch, length int64) torch.Value {
	f := t.Enter()
	queries, keys := f.Let(t.Arange(length)), f.Let(t.Arange(length))
	ids := f.Let(t.Integers(t.Unsqueeze(queries, 1), t.Unsqueeze(keys, 0)))
	if m.cfg.Buckets > 0 {
		if t.RunScript("make_log_bucket_position") {
			ids.Set(compiledLogBuckets(t, ids))
		} else {
			ids.Set(logBuckets(t, ids))
		}
	}
	ids.Set(t.To(ids, torch.Int64))
	return f.Return(t.Unsqueeze(t.Unsqueeze(ids, 0), 1))
}

// logBuckets is make_log_bucket_position as TorchScript runs it the first time,
// operator by operator: what is not used again goes at once.
func logBuckets(t *torch.Torch, distances *torch.Var) torch.Value {
	f := t.Enter()
	sign := f.Let(t.Integers(distances))
	near := t.Compare(t.Compare(distances), t.Compare(distances)) // both go when the result is there
	inner := t.Full(torch.Int64)                                  // torch.tensor(mid - 1).type_as(relative_pos)
	absolute := f.Let(t.Integers(near, inner, t.Integers(distances)))
	log := f.Let(t.Floats(absolute))
	for range 5 { // log, / log, * (mid - 1), ceil, + mid
		log.Set(t.Floats(log))
	}
	small := t.Compare(absolute)
	absolute.Del()
	own := t.To(distances, torch.Float32)
	signed := t.Floats(log, sign)
	log.Del()
	sign.Del()
	return f.Return(t.Floats(small, own, signed))
}

// compiledLogBuckets is the same once TorchScript has seen it run: the fuser
// leaves the sign, the number on the device, two results of a first kernel, what
// it does not fuse, ceil, and the result of a second kernel
// (torch/csrc/jit/passes/tensorexpr_fuser.cpp).
func compiledLogBuckets(t *torch.Torch, distances *torch.Var) torch.Value {
	f := t.Enter()
	sign := f.Let(t.Integers(distances))
	inner := f.Let(t.Full(torch.Int64))
	log := f.Let(t.Floats(distances))
	absolute := f.Let(t.Integers(distances))
	inner.Del()
	log.Set(t.Floats(log))
	out := t.Floats(log)
	log.Del()
	absolute.Del()
	sign.Del()
	return f.Return(out)
}
