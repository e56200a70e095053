package models

import (
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

type llamaLayer struct {
	query, key, value, output *torch.Linear
	queryNorm, keyNorm        *torch.RMSNorm // of each head; nil without
	gate, up, down            *torch.Linear
	inputNorm, attentionNorm  *torch.RMSNorm
	sliding                   bool // attends through a window
}

// llama is LlamaForCausalLM, and MistralForCausalLM, Qwen2ForCausalLM and
// Qwen3ForCausalLM, which differ in biases, in the window of their attention
// and in norms of queries and keys
// (transformers/models/llama/modeling_llama.py, mistral, qwen2, qwen3).
type llama struct {
	cfg    *workload.Llama
	w      *workload.Workload
	embed  *torch.Embedding
	layers []llamaLayer
	norm   *torch.RMSNorm
	rotary *rotary
	head   *torch.Linear
}

// newLlama makes the model, parameters in the order of its constructors.
func newLlama(t *torch.Torch, c *workload.Llama, w *workload.Workload, dtype torch.DType) *Model {
	m := &llama{cfg: c, w: w, embed: t.NewEmbedding(c.VocabSize, c.HiddenSize, dtype)}
	width, groups := c.Heads*c.HeadSize(), c.Groups()*c.HeadSize()
	for i := range c.Layers {
		l := llamaLayer{
			query:   t.NewLinear(c.HiddenSize, width, c.QKVBias(), dtype),
			key:     t.NewLinear(c.HiddenSize, groups, c.QKVBias(), dtype),
			value:   t.NewLinear(c.HiddenSize, groups, c.QKVBias(), dtype),
			output:  t.NewLinear(width, c.HiddenSize, c.AttentionBias, dtype),
			sliding: c.Sliding(i),
		}
		if c.QKNorm() {
			l.queryNorm = t.NewRMSNorm(c.HeadSize(), dtype)
			l.keyNorm = t.NewRMSNorm(c.HeadSize(), dtype)
		}
		l.gate = t.NewLinear(c.HiddenSize, c.IntermediateSize, c.MLPBias, dtype)
		l.up = t.NewLinear(c.HiddenSize, c.IntermediateSize, c.MLPBias, dtype)
		l.down = t.NewLinear(c.IntermediateSize, c.HiddenSize, c.MLPBias, dtype)
		l.inputNorm = t.NewRMSNorm(c.HiddenSize, dtype)
		l.attentionNorm = t.NewRMSNorm(c.HiddenSize, dtype)
		m.layers = append(m.layers, l)
	}
	m.norm = t.NewRMSNorm(c.HiddenSize, dtype)
	m.rotary = newRotary(t, c.Rope(), c.HeadSize())
	m.rotary.initWeights(t)
	m.head = t.NewLinear(c.HiddenSize, c.VocabSize, false, dtype)
	if c.TieWordEmbeddings {
		t.Tie(m.head, m.embed)
	}
	m.rotary.cast(t, dtype)
	return &Model{Forward: m.forward, Kind: Language, NumLabels: c.VocabSize}
}

func (m *llama) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	cache := m.newCache()
	hidden := f.Let(m.model(t, batch, cache))
	// hidden_states[:, slice(0, None), :] is another view of all of it.
	logits := f.Let(t.In("lm_head", func() torch.Value { return t.Linear(t.Alias(hidden), m.head) }))
	var loss torch.Value
	if batch.Labels != nil {
		loss = f.Keep(f.Let(causalLMLoss(t, logits, batch.Labels)))
	}
	out := Output{Loss: loss, Logits: f.Keep(logits), Rest: cache.tensors()}
	f.End()
	return out
}

// newCache is DynamicCache(config), which checkpointing does without.
func (m *llama) newCache() *dynamicCache {
	if !m.cfg.UseCache || m.w.Checkpointing {
		return nil
	}
	return &dynamicCache{sliding: m.cfg.Sliding}
}

// model is LlamaModel.forward.
func (m *llama) model(t *torch.Torch, batch *Batch, cache *dynamicCache) torch.Value {
	f := t.Enter().In("model")
	positions := f.Let(torch.Value{})
	embeds := f.Let(t.In("embed_tokens", func() torch.Value { return t.Embedding(torch.Borrow(batch.IDs), m.embed) }))
	positions.Set(t.Unsqueeze(t.Integers(t.Arange(batch.IDs.Dim(1))), 0))
	full, sliding := f.Let(torch.Value{}), f.Let(torch.Value{})
	if m.cfg.IsQwen() { // its mask_kwargs is a dictionary that lives on
		f.Let(embeds)
		f.Let(positions)
	}
	if m.cfg.HasFullLayers() {
		full.Set(m.mask(0, cache).make(t, embeds, positions, batch.Mask))
	}
	if m.cfg.HasSlidingLayers() {
		sliding.Set(m.mask(*m.cfg.SlidingWindow, cache).make(t, embeds, positions, batch.Mask))
	}
	hidden := f.Let(embeds)
	c, s := m.rotary.angles(t, hidden, positions)
	sin, cos := f.Let(s), f.Let(c) // a tuple drops its last element first
	for i := range m.layers {
		mask := full
		if m.layers[i].sliding {
			mask = sliding
		}
		layer := func(x *torch.Var, k []*torch.Var) torch.Value {
			return m.layer(t, i, x, k[0], k[2], k[1], cache)
		}
		if m.w.Checkpointing && m.w.Mode == workload.Training {
			hidden.Set(t.Checkpoint(layer, hidden, mask, sin, cos, positions))
		} else {
			hidden.Set(layer(hidden, []*torch.Var{mask, sin, cos}))
		}
	}
	hidden.Set(t.In("norm", func() torch.Value { return rmsNorm(t, hidden, m.norm) }))
	return f.Return(hidden)
}

func (m *llama) mask(window int64, cache *dynamicCache) causalMask {
	return causalMask{
		window: window, eager: m.w.Attention == workload.Eager,
		padded: m.w.AttentionMask == workload.Padded, cached: cache != nil,
	}
}

// rmsNorm is LlamaRMSNorm.
func rmsNorm(t *torch.Torch, x *torch.Var, m *torch.RMSNorm) torch.Value {
	f := t.Enter()
	hidden := f.Let(x)
	dtype := hidden.Tensor().DType
	hidden.Set(t.To(hidden, torch.Float32))
	variance := f.Let(t.MeanLast(t.Pow(hidden)))
	hidden.Set(t.Mul(hidden, t.Rsqrt(t.Shift(variance))))
	return f.Return(t.Mul(torch.Borrow(m.Weight), t.To(hidden, dtype)))
}

func (m *llama) layer(t *torch.Torch, i int, x, mask, cos, sin *torch.Var, cache *dynamicCache) torch.Value {
	f, l := t.Enter().In("layers", i), &m.layers[i]
	hidden := f.Let(x)
	residual := f.Let(hidden)
	hidden.Set(rmsNorm(t, hidden, l.inputNorm))
	attended, weights := m.attention(t, l, hidden, mask, cos, sin, cache)
	hidden.Set(attended)
	f.Let(weights) // hidden_states, _ = self.self_attn(...): a name like any other
	hidden.Set(t.Add(residual, hidden))
	residual.Set(hidden)
	hidden.Set(rmsNorm(t, hidden, l.attentionNorm))
	hidden.Set(t.In("mlp", func() torch.Value { return llamaMLP(t, l, hidden) }))
	hidden.Set(t.Add(residual, hidden))
	return f.Return(hidden)
}

func (m *llama) attention(t *torch.Torch, l *llamaLayer, hidden, mask, cos, sin *torch.Var, cache *dynamicCache) (out, weights torch.Value) {
	f := t.Enter().In("self_attn")
	b, s, size := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1), m.cfg.HeadSize()
	split := func(x torch.Value, norm *torch.RMSNorm) *torch.Var {
		x = t.View(x, b, s, -1, size)
		if norm != nil {
			x = normHeads(t, x, norm)
		}
		return f.Let(t.Transpose(x, 1, 2))
	}
	q := split(t.Linear(hidden, l.query), l.queryNorm)
	k := split(t.Linear(hidden, l.key), l.keyNorm)
	v := split(t.Linear(hidden, l.value), nil)
	applyRotary(t, q, k, cos, sin)
	cache.update(t, k, v)
	dropout := m.cfg.AttentionDropout
	if m.w.Mode != workload.Training {
		dropout = 0
	}
	attended, weights := groupedAttention(t, m.w.Attention, q, k, v, mask, dropout)
	o := f.Let(attended)
	o.Set(t.Contiguous(t.Reshape(o, b, s, -1)))
	o.Set(t.Linear(o, l.output))
	return f.Return(o), weights
}

// normHeads is self.q_norm(…) or self.k_norm(…) of Qwen3Attention, called with a
// temporary that lives until the call returns.
func normHeads(t *torch.Torch, heads torch.Value, norm *torch.RMSNorm) torch.Value {
	f := t.Enter()
	return f.Return(rmsNorm(t, f.Let(heads), norm))
}

// llamaMLP is LlamaMLP.forward.
func llamaMLP(t *torch.Torch, l *llamaLayer, x *torch.Var) torch.Value {
	return t.Linear(t.Mul(t.SiLU(t.Linear(x, l.gate)), t.Linear(x, l.up)), l.down)
}
