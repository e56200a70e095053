package models

import "memorymark/internal/torch"

// latentAttention is DeepseekV2Attention: keys and values of all heads come from one small
// vector of a token, and a part of a key that is rotated is shared by all heads.
type latentAttention struct {
	query                *torch.Linear // nil if queries come from a small vector too
	queryDown, queryUp   *torch.Linear
	queryNorm            *torch.RMSNorm
	down                 *torch.Linear // kv_a_proj_with_mqa
	norm                 *torch.RMSNorm
	up                   *torch.Linear // kv_b_proj
	output               *torch.Linear
	plain, rotated, size int64 // of queries and keys, and of values
	rank                 int64 // of the small vector
}

// newLatentAttention makes the module in the order of its constructor.
func newLatentAttention(t *torch.Torch, c *deepseekV2Config, r Run) latentAttention {
	linear := func(in, out int64, bias bool, name string) *torch.Linear {
		return t.NewLinear(in, out, bias, r.DType).Named("self_attn." + name)
	}
	a := latentAttention{plain: c.Plain, rotated: c.Rotated, size: c.ValueSize, rank: c.Latent}
	queries := c.Heads * (c.Plain + c.Rotated)
	if c.Queries == nil {
		a.query = linear(c.HiddenSize, queries, false, "q_proj")
	} else {
		a.queryDown = linear(c.HiddenSize, *c.Queries, c.AttentionBias, "q_a_proj")
		a.queryNorm = t.NewRMSNorm(*c.Queries, r.DType)
		a.queryUp = linear(*c.Queries, queries, false, "q_b_proj")
	}
	a.down = linear(c.HiddenSize, c.Latent+c.Rotated, c.AttentionBias, "kv_a_proj_with_mqa")
	a.norm = t.NewRMSNorm(c.Latent, r.DType)
	a.up = linear(c.Latent, c.Heads*(c.Plain+c.ValueSize), false, "kv_b_proj")
	a.output = linear(c.Heads*c.ValueSize, c.HiddenSize, c.AttentionBias, "o_proj")
	return a
}

// latent is DeepseekV2Attention.forward. The cache holds the small vectors.
func (m deepseekV2) latent(t *torch.Torch, i int, hidden, mask, cis, _ *torch.Var, cache *dynamicCache) (out, weights torch.Value) {
	f, a := t.Enter().In("self_attn"), &m.attention[i]
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	q := f.Let(m.queries(t, a, hidden))
	q.Set(t.Transpose(t.View(q, b, s, -1, a.plain+a.rotated), 1, 2))
	parts := t.SplitSizes(q, -1, a.plain, a.rotated)
	plain, turned := f.Let(parts[0]), f.Let(parts[1])
	compressed := f.Let(t.Linear(hidden, a.down))
	parts = t.SplitSizes(compressed, -1, a.rank, a.rotated)
	latent, turnedKey := f.Let(parts[0]), f.Let(parts[1])
	key := f.Let(t.View(m.normed(t, latent, a.norm), b, 1, s, a.rank))
	turnedKey.Set(t.View(turnedKey, b, 1, s, a.rotated))
	applyComplexRotary(t, turned, turnedKey, cis)
	cache.update(t, key, turnedKey)
	queries := f.Let(t.Cat(-1, plain, turned))
	keys, values := a.expand(t, f, key, turnedKey)
	dropout := m.run.dropout(m.cfg.AttentionDropout)
	attended, weights := groupedAttention(t, groupedOptions{eager: m.run.Eager, dropout: dropout}, queries, keys, values, mask)
	o := f.Let(attended)
	o.Set(t.Contiguous(t.Reshape(o, b, s, -1)))
	o.Set(t.Linear(o, a.output))
	return f.Return(o), weights
}

// queries projects the queries, at once or through a small vector.
func (m deepseekV2) queries(t *torch.Torch, a *latentAttention, hidden *torch.Var) torch.Value {
	if a.query != nil {
		return t.Linear(hidden, a.query)
	}
	return t.Linear(m.normTemporary(t, t.Linear(hidden, a.queryDown), a.queryNorm), a.queryUp)
}

// expand is expand_kv: keys and values of all heads. The caller keeps both.
func (a *latentAttention) expand(t *torch.Torch, outer *torch.Frame, latent, turned *torch.Var) (keys, values *torch.Var) {
	f := t.Enter()
	b, s := latent.Tensor().Dim(0), latent.Tensor().Dim(2)
	both := f.Let(t.Transpose(t.View(t.Linear(latent, a.up), b, s, -1, a.plain+a.size), 1, 2))
	wide := f.Let(torch.Value{}) // k_rot, which is an argument
	heads := both.Tensor().Dim(1)
	parts := t.SplitSizes(both, -1, a.plain, a.size)
	plain, v := f.Let(parts[0]), f.Let(parts[1])
	wide.Set(t.Expand(turned, b, heads, s, a.rotated))
	k := f.Let(t.Full(both.Tensor().DType, b, heads, s, a.plain+a.rotated))
	t.CopyInto(k, 0, a.plain, plain)
	t.CopyInto(k, a.plain, a.plain+a.rotated, wide)
	keys, values = outer.Let(f.Keep(k)), outer.Let(f.Keep(v))
	f.End()
	return keys, values
}

// applyComplexRotary is apply_rotary_emb; the names then stand for what was
// rotated.
func applyComplexRotary(t *torch.Torch, q, k, angles *torch.Var) {
	f := t.Enter()
	pairs := func(x *torch.Var) *torch.Var {
		shape := x.Tensor().Shape
		return f.Let(t.ViewAsComplex(t.Reshape(t.To(x, torch.Float32), shape[0], shape[1], shape[2], -1, 2)))
	}
	queries, keys := pairs(q), pairs(k)
	cis := f.Let(t.Unsqueeze(angles, 1))
	rotated := func(x, pairs *torch.Var) torch.Value {
		flat := t.Reshape(t.ViewAsReal(t.MulComplex(pairs, cis)), x.Tensor().Shape...)
		return f.Keep(f.Let(t.To(flat, x.Tensor().DType)))
	}
	newQ, newK := rotated(q, queries), rotated(k, keys)
	f.End()
	q.Set(newQ)
	k.Set(newK)
}
