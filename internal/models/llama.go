package models

import "memorymark/internal/torch"

var (
	llamaFamily   = Family{Type: "llama", stages: true, read: reads(readLlama), Heads: decoderHeads("Llama")}
	mistralFamily = Family{Type: "mistral", stages: true, read: reads(readLlama), Heads: decoderHeads("Mistral")}
	qwen2Family   = Family{Type: "qwen2", stages: true, read: reads(readLlama), Heads: decoderHeads("Qwen2")}
	qwen3Family   = Family{Type: "qwen3", stages: true, read: reads(readLlama), Heads: decoderHeads("Qwen3")}
)

type llamaLayer struct {
	query, key, value, output *torch.Linear
	queryNorm, keyNorm        *torch.RMSNorm // nil without
	gate, up, down            *torch.Linear
	inputNorm, attentionNorm  *torch.RMSNorm
	sliding                   bool // attends through a window
}

// llama is LlamaModel, and MistralModel, Qwen2Model and Qwen3Model, which differ
// in biases, in the window of their attention and in norms of queries and keys
// (transformers/models/llama/modeling_llama.py, mistral, qwen2, qwen3).
type llama struct {
	cfg    *llamaConfig
	run    Run
	name   string // what the head calls the model, "" without one
	embed  *torch.Embedding
	layers []llamaLayer
	norm   *torch.RMSNorm
	rotary *rotary
	head   *torch.Linear
}

// newLlama makes LlamaModel, parameters in the order of its constructors.
func newLlama(t *torch.Torch, c *llamaConfig, r Run) *llama {
	m := &llama{cfg: c, run: r, name: "model"}
	if r.Stage.first() {
		m.embed = t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("embed_tokens")
	}
	for i := range c.Layers {
		if !r.Stage.has(i) {
			continue
		}
		var l llamaLayer
		l.projections(t, c, r)
		l.sliding = c.Sliding(i)
		if c.QKNorm() {
			l.queryNorm = t.NewRMSNorm(c.HeadSize(), r.DType)
			l.keyNorm = t.NewRMSNorm(c.HeadSize(), r.DType)
		}
		l.addGated(t, c, r)
		l.inputNorm = t.NewRMSNorm(c.HiddenSize, r.DType)
		l.attentionNorm = t.NewRMSNorm(c.HiddenSize, r.DType)
		m.layers = append(m.layers, l)
	}
	if r.Stage.last() {
		m.norm = t.NewRMSNorm(c.HiddenSize, r.DType)
	}
	m.rotary = newRotary(t, c.Rope(), c.HeadSize())
	t.Drop(m.rotary.frequencies(t)) // _init_weights
	return m
}

// projections makes what LlamaAttention has.
func (l *llamaLayer) projections(t *torch.Torch, c *llamaConfig, r Run) {
	width, groups := c.Heads*c.HeadSize(), c.Groups()*c.HeadSize()
	l.query = t.NewLinear(c.HiddenSize, width, c.QKVBias(), r.DType).Named("self_attn.q_proj").InHeads(c.HeadSize())
	l.key = t.NewLinear(c.HiddenSize, groups, c.QKVBias(), r.DType).Named("self_attn.k_proj").InHeads(c.HeadSize())
	l.value = t.NewLinear(c.HiddenSize, groups, c.QKVBias(), r.DType).Named("self_attn.v_proj").InHeads(c.HeadSize())
	l.output = t.NewLinear(width, c.HiddenSize, c.AttentionBias, r.DType).Named("self_attn.o_proj")
}

// addGated makes what LlamaMLP has.
func (l *llamaLayer) addGated(t *torch.Torch, c *llamaConfig, r Run) {
	l.gate = t.NewLinear(c.HiddenSize, c.IntermediateSize, c.MLPBias, r.DType).Named("mlp.gate_proj")
	l.up = t.NewLinear(c.HiddenSize, c.IntermediateSize, c.MLPBias, r.DType).Named("mlp.up_proj")
	l.down = t.NewLinear(c.IntermediateSize, c.HiddenSize, c.MLPBias, r.DType).Named("mlp.down_proj")
}

// trunk is LlamaModel for a head.
func (m *llama) trunk(t *torch.Torch, batch *Batch) trunkOutput {
	cache := m.newCache()
	hidden := m.model(t, batch, cache)
	return trunkOutput{hidden: hidden, rest: cache.tensors()}
}

func (m *llama) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	cache := m.newCache()
	hidden := f.Let(m.model(t, batch, cache))
	// hidden_states[:, slice(0, None), :] is another view of all of it.
	logits := f.Let(t.In("lm_head", func() torch.Value { return t.Linear(t.Alias(hidden), m.head) }))
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(causalLMLoss(t, logits, batch))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(logits), Cache: cache.tensors()}
	f.End()
	return out
}

// newCache is DynamicCache(config), which checkpointing does without.
func (m *llama) newCache() *dynamicCache {
	if !m.cfg.UseCache || m.run.Checkpointing || m.run.NoCache {
		return nil
	}
	return &dynamicCache{sliding: m.cfg.Sliding}
}

// model is LlamaModel.forward.
func (m *llama) model(t *torch.Torch, batch *Batch, cache *dynamicCache) torch.Value {
	f := enter(t, m.name)
	positions := f.Let(torch.Value{})
	embeds := f.Let(torch.Value{})
	if batch.Hidden != nil {
		embeds.Set(torch.Borrow(batch.Hidden))
	} else {
		embeds.Set(t.In("embed_tokens", func() torch.Value { return t.Embedding(torch.Borrow(batch.IDs), m.embed) }))
	}
	positions.Set(positionsOf(t, embeds.Tensor().Dim(1)))
	full, sliding := f.Let(torch.Value{}), f.Let(torch.Value{})
	if m.cfg.MapsMasks() { // its mask_kwargs is a dictionary that lives on
		f.Let(embeds)
		f.Let(positions)
	}
	if m.cfg.MasksAll() {
		full.Set(m.mask(0, batch, cache).make(t, embeds, positions, batch.Mask))
	}
	if m.cfg.MasksWindow() {
		sliding.Set(m.mask(*m.cfg.SlidingWindow, batch, cache).make(t, embeds, positions, batch.Mask))
	}
	hidden := f.Let(embeds)
	cosines, sines := m.rotary.angles(t, hidden, positions)
	sin, cos := f.Let(sines), f.Let(cosines) // a tuple drops its last element first
	for i := range m.layers {
		mask := full
		if m.layers[i].sliding {
			mask = sliding
		}
		if m.run.Checkpointing && m.run.Train {
			hidden.Set(m.checkpointed(t, i, hidden, mask, cos, sin, positions))
		} else {
			hidden.Set(m.layer(t, i, hidden, mask, cos, sin, cache))
		}
	}
	if m.norm != nil {
		hidden.Set(t.In("norm", func() torch.Value { return rmsNorm(t, hidden, m.norm) }))
	}
	return f.Return(hidden)
}

// positionsOf are the positions of tokens, as a row.
func positionsOf(t *torch.Torch, length int64) torch.Value {
	return t.Unsqueeze(t.Integers(t.Arange(length)), 0)
}

// checkpointed is a layer's call under checkpointing, without a cache. Its
// keywords die in the order in which they are given: Mistral's names positions first.
func (m *llama) checkpointed(t *torch.Torch, i int, hidden, mask, cos, sin, positions *torch.Var) torch.Value {
	keywords, sinAt := []torch.X{mask, sin, cos, positions}, 1
	if m.cfg.family == "mistral" {
		keywords, sinAt = []torch.X{mask, positions, sin, cos}, 2
	}
	layer := func(x *torch.Var, k []*torch.Var) torch.Value {
		return m.layer(t, i, x, k[0], k[sinAt+1], k[sinAt], nil)
	}
	return t.Checkpoint(layer, hidden, keywords...)
}

func (m *llama) mask(window int64, batch *Batch, cache *dynamicCache) causalMask {
	return causalMask{window: window, eager: m.run.Eager, padded: batch.Padded, cached: cache != nil}
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

// layer is LlamaDecoderLayer.forward.
func (m *llama) layer(t *torch.Torch, i int, x, mask, cos, sin *torch.Var, cache *dynamicCache) torch.Value {
	f, l := t.Enter().In("layers", i+m.run.Stage.before()), &m.layers[i]
	hidden := f.Let(x)
	residual := f.Let(hidden)
	hidden.Set(rmsNorm(t, hidden, l.inputNorm))
	attended, weights := m.attention(t, i, hidden, mask, cos, sin, cache)
	hidden.Set(attended)
	f.Let(weights) // hidden_states, _ = self.self_attn(...): a name like any other
	hidden.Set(t.Add(residual, hidden))
	residual.Set(hidden)
	hidden.Set(rmsNorm(t, hidden, l.attentionNorm))
	hidden.Set(t.In("mlp", func() torch.Value { return m.mlp(t, i, hidden) }))
	hidden.Set(t.Add(residual, hidden))
	return f.Return(hidden)
}

// attention is LlamaAttention.forward.
func (m *llama) attention(t *torch.Torch, i int, hidden, mask, cos, sin *torch.Var, cache *dynamicCache) (out, weights torch.Value) {
	f := t.Enter().In("self_attn")
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	q, k, v := m.project(t, f, i, hidden)
	applyRotary(t, q, k, cos, sin)
	cache.update(t, k, v)
	dropout := m.run.dropout(m.cfg.AttentionDropout)
	attended, weights := groupedAttention(t, groupedOptions{eager: m.run.Eager, dropout: dropout}, q, k, v, mask)
	o := f.Let(attended)
	o.Set(t.Contiguous(t.Reshape(o, b, s, -1)))
	o.Set(t.Linear(o, m.layers[i].output))
	return f.Return(o), weights
}

// project makes queries, keys and values.
func (m *llama) project(t *torch.Torch, f *torch.Frame, i int, hidden *torch.Var) (q, k, v *torch.Var) {
	l, b, s := &m.layers[i], hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	split := func(x torch.Value, norm *torch.RMSNorm) *torch.Var {
		x = t.View(x, b, s, -1, m.cfg.HeadSize())
		if norm != nil {
			x = normTemporary(t, x, norm)
		}
		return f.Let(t.Transpose(x, 1, 2))
	}
	q = split(t.Linear(hidden, l.query), l.queryNorm)
	k = split(t.Linear(hidden, l.key), l.keyNorm)
	v = split(t.Linear(hidden, l.value), nil)
	return q, k, v
}

// normTemporary is self.q_norm(…) or self.k_norm(…) of Qwen3Attention, called
// with a temporary that lives until the call returns.
func normTemporary(t *torch.Torch, x torch.Value, norm *torch.RMSNorm) torch.Value {
	f := t.Enter()
	return f.Return(rmsNorm(t, f.Let(x), norm))
}

// mlp is LlamaMLP.forward.
func (m *llama) mlp(t *torch.Torch, i int, x *torch.Var) torch.Value {
	l := &m.layers[i]
	return t.Linear(t.Mul(activations[m.cfg.HiddenAct](t, t.Linear(x, l.gate)), t.Linear(x, l.up)), l.down)
}
