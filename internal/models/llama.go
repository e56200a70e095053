package models

import (
	"slices"

	"memorymark/internal/torch"
)

var (
	llamaFamily   = Family{Type: "llama", stages: true, Versions: []Versions{newest, last4, older4}, read: reads(readLlama), Heads: decoderHeads("Llama", newLlama, allHeads...)}
	mistralFamily = Family{
		Type: "mistral", stages: true, Versions: []Versions{newest, last4, older4}, Except: map[Versions][]string{older4: {"MistralForQuestionAnswering"}},
		read: reads(readLlama), Heads: decoderHeads("Mistral", newLlama, allHeads...),
	}
	qwen2Family = Family{Type: "qwen2", stages: true, Versions: []Versions{newest, last4, older4}, read: reads(readLlama), Heads: decoderHeads("Qwen2", newLlama, allHeads...)}
	qwen3Family = Family{Type: "qwen3", stages: true, Versions: []Versions{newest, last4, older4}, read: reads(readLlama), Heads: decoderHeads("Qwen3", newLlama, allHeads...)}
)

type llamaLayer struct {
	query, key, value, output *torch.Linear
	queryNorm, keyNorm        *torch.RMSNorm // nil without
	gate, up, down            *torch.Linear
	inputNorm, attentionNorm  *torch.RMSNorm
	feedNorm, feedOutputNorm  *torch.RMSNorm // nil without
	sliding                   bool           // attends through a window
	rotary                    int            // which of the model's
}

// llama is LlamaModel, and MistralModel, Qwen2Model and Qwen3Model, which differ
// in biases, in the window of their attention and in norms of queries and keys
// (transformers/models/llama/modeling_llama.py, mistral, qwen2, qwen3). Families
// that differ in more have a variant, and a file of their own.
type llama struct {
	variant
	cfg      *llamaConfig
	run      Run
	name     string // what the head calls the model, "" without one
	embed    *torch.Embedding
	layers   []llamaLayer
	norm     *torch.RMSNorm
	rotaries []*rotary // one, or those of full and of sliding attention
	head     *torch.Linear
}

// variant is what families of Llama's line write in their own ways.
type variant struct {
	embedded func(t *torch.Torch, batch *Batch) torch.Value
	normed   func(t *torch.Torch, x *torch.Var, m *torch.RMSNorm) torch.Value
	layer    func(t *torch.Torch, i int, x, mask, cos, sin *torch.Var, cache *dynamicCache) torch.Value
	attend   func(t *torch.Torch, i int, hidden, mask, cos, sin *torch.Var, cache *dynamicCache) (out, weights torch.Value)
	project  func(t *torch.Torch, f *torch.Frame, i int, hidden *torch.Var) (q, k, v *torch.Var)
	rotate   func(t *torch.Torch, i int, q, k, cos, sin *torch.Var)
	feed     func(t *torch.Torch, i int, x *torch.Var) torch.Value // mlp

	capsScores, capsLogits bool    // through a tanh; of attention only if it is eager
	angles                 keyword // where they are among the keywords that a layer is called with
	scalesLate             bool    // embeddings, behind the rotary positions
}

// newLlama makes LlamaModel, parameters in the order of its constructors.
func newLlama(t *torch.Torch, c *llamaConfig, r Run) *llama {
	m := newLlamaModel(c, r)
	if c.family == "mistral" || r.Versions.Transformers.Before(5, 0) {
		m.angles = last
	}
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
	m.finish(t)
	return m
}

// newLlamaModel makes a model that has no parameters yet and does everything as
// Llama does.
func newLlamaModel(c *llamaConfig, r Run) *llama {
	m := &llama{cfg: c, run: r, name: "model"}
	m.variant = variant{normed: rmsNorm, layer: m.llamaLayer, attend: m.attention, project: m.llamaProject, feed: m.llamaMLP}
	m.embedded = func(t *torch.Torch, batch *Batch) torch.Value { return t.Embedding(torch.Borrow(batch.IDs), m.embed) }
	m.rotate = func(t *torch.Torch, _ int, q, k, cos, sin *torch.Var) { applyRotary(t, q, k, cos, sin) }
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

// decayNorms has Hugging Face's Trainer decay norms, as that of transformers 4.51 does:
// it knows them by names that end in layernorm, and Llama's by their class
// (transformers/trainer.py, get_decay_parameter_names).
func (m *llama) decayNorms() {
	if m.cfg.family == "llama" || !m.run.Versions.Transformers.Before(4, 57) {
		return
	}
	norms := []*torch.RMSNorm{m.norm}
	for i := range m.layers {
		norms = append(norms, m.layers[i].queryNorm, m.layers[i].keyNorm)
	}
	for _, n := range norms {
		if n != nil {
			n.Weight.OddDecay()
		}
	}
}

// finish makes what comes after the layers.
func (m *llama) finish(t *torch.Torch) { m.finishRotating(t, m.cfg.Rope(), m.cfg.HeadSize()) }

// finishRotating is finish of a model that rotates so much of a head.
func (m *llama) finishRotating(t *torch.Torch, kind RopeType, size int64) *rotary {
	if m.run.Stage.last() {
		m.norm = t.NewRMSNorm(m.cfg.HiddenSize, m.run.DType)
	}
	var r *rotary
	if m.run.Versions.Transformers.Before(5, 0) {
		r = newRotary4(t, kind, size)
	} else {
		r = newRotary(t, kind, size).of(m.run.Versions)
		r.initWeights(t)
	}
	m.rotaries = append(m.rotaries, r)
	return r
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
	logits := f.Let(t.In("lm_head", func() torch.Value { return t.Linear(allOfSlices(t, hidden), m.head) }))
	if m.capsLogits { // counted with the head
		logits.Set(t.In("lm_head", func() torch.Value { return t.Scale(logits) }))
		logits.Set(t.In("lm_head", func() torch.Value { return t.Tanh(logits) }))
		logits.Set(t.In("lm_head", func() torch.Value { return t.Scale(logits) }))
	}
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
	if !m.cfg.UseCache || m.run.Checkpointing || m.run.NoCache || m.trainsWithoutCache() {
		return nil
	}
	cache := newDynamicCache(m.run.Versions)
	if !m.run.Versions.Transformers.Before(5, 0) { // before, the window is a number of Python's
		cache.sliding = m.cfg.Sliding
	}
	return cache
}

// model is LlamaModel.forward.
func (m *llama) model(t *torch.Torch, batch *Batch, cache *dynamicCache) torch.Value {
	f := enter(t, m.name)
	positions := f.Let(torch.Value{})
	embeds := f.Let(torch.Value{})
	if batch.Hidden != nil {
		embeds.Set(torch.Borrow(batch.Hidden))
	} else {
		embeds.Set(t.In("embed_tokens", func() torch.Value { return m.embedded(t, batch) }))
	}
	positions.Set(positionsOf(t, embeds.Tensor().Dim(1), m.run.Versions))
	if m.run.Versions.Transformers.Before(5, 0) {
		f.Let(positions) // as cache_position, which stands behind inputs_embeds
	}
	full, sliding := f.Let(torch.Value{}), f.Let(torch.Value{})
	if m.cfg.MapsMasks() && !m.run.Versions.convertsMasks() { // its mask_kwargs is a dictionary that lives on
		f.Let(embeds)
		f.Let(positions)
	}
	m.masks(t, batch, cache, embeds, positions, full, sliding)
	hidden := f.Let(embeds)
	angles := make([]*torch.Var, 0, 2*len(m.rotaries))
	for _, r := range m.rotaries {
		c, s := r.angles(t, hidden, positions)
		angles = append(angles, f.Let(s), f.Let(c)) // a tuple drops its last element first
	}
	if m.scalesLate {
		hidden.Set(t.Scale(hidden))
	}
	for i := range m.layers {
		mask := full
		if m.layers[i].sliding {
			mask = sliding
		}
		if m.run.Checkpointing && m.run.Train {
			hidden.Set(m.checkpointed(t, i, hidden, mask, angles, positions))
		} else {
			sin, cos := m.rotating(i, angles)
			hidden.Set(m.layer(t, i, hidden, mask, cos, sin, cache))
		}
	}
	if m.returnsTuples() {
		f.Let(hidden) // in layer_outputs, what the last layer returned
	}
	if m.norm != nil {
		hidden.Set(t.In("norm", func() torch.Value { return m.normed(t, hidden, m.norm) }))
	}
	return f.Return(hidden)
}

// rotating are the sine and the cosine that a layer rotates by.
func (m *llama) rotating(i int, angles []*torch.Var) (sin, cos *torch.Var) {
	at := 2 * m.layers[i].rotary
	return angles[at], angles[at+1]
}

// keyword is where an argument is among those that a layer is called with.
type keyword int

// The places of the angles.
const (
	behindMask keyword = iota
	last
	first // those of all layers, whatever this one rotates by
)

// checkpointed is a layer's call under checkpointing, without a cache. Its
// keywords die in the order in which they are given.
func (m *llama) checkpointed(t *torch.Torch, i int, hidden, mask *torch.Var, angles []*torch.Var, positions *torch.Var) torch.Value {
	if m.run.Versions.Transformers.Before(4, 57) {
		return m.checkpointed4(t, i, hidden, mask, angles, positions)
	}
	sin, cos := m.rotating(i, angles)
	keywords, maskAt, sinAt := []torch.X{mask, sin, cos, positions}, 0, 1
	switch m.angles {
	case last:
		keywords, sinAt = []torch.X{mask, positions, sin, cos}, 2
	case first:
		keywords, maskAt, sinAt = append(asInputs(angles), mask, positions), len(angles), 2*m.layers[i].rotary
	}
	layer := func(x *torch.Var, k []*torch.Var) torch.Value {
		return m.layer(t, i, x, k[maskAt], k[sinAt+1], k[sinAt], nil)
	}
	return t.Checkpoint(layer, hidden, keywords...)
}

// checkpointed4 is checkpointed in transformers 4.51, where arguments have no names:
// tensors die before those in tuples, the last of which dies first (_NoopSaveInputs,
// torch/utils/checkpoint.py, keeps them in a list).
func (m *llama) checkpointed4(t *torch.Torch, i int, hidden, mask *torch.Var, angles []*torch.Var, positions *torch.Var) torch.Value {
	inputs := []torch.X{hidden, mask, positions}
	for at := len(angles) - 2; at >= 0; at -= 2 {
		inputs = append(inputs, angles[at], angles[at+1])
	}
	layer := func(in []*torch.Var) torch.Value {
		at := len(in) - 2 - 2*m.layers[i].rotary
		return m.layer(t, i, in[0], in[1], in[at+1], in[at], nil)
	}
	return t.CheckpointInputs(layer, inputs...)
}

func asInputs(vars []*torch.Var) []torch.X {
	inputs := make([]torch.X, len(vars))
	for i, v := range vars {
		inputs[i] = v
	}
	return inputs
}

// masks makes the masks that layers take. Transformers 4.51 has one for all of
// them, of the window that the configuration has.
func (m *llama) masks(t *torch.Torch, batch *Batch, cache *dynamicCache, embeds, positions, full, sliding *torch.Var) {
	if m.run.Versions.convertsMasks() {
		full.Set(m.legacyMask(batch).update(t, embeds, positions, batch.Mask))
		sliding.Set(full)
		return
	}
	if m.cfg.MasksAll() {
		full.Set(m.mask(0, batch, cache).make(t, embeds, positions, batch.Mask))
	}
	if m.cfg.MasksWindow() {
		sliding.Set(m.mask(*m.cfg.SlidingWindow, batch, cache).make(t, embeds, positions, batch.Mask))
	}
}

// legacyMask is the mask of transformers 4.51. Layers of Gemma 2 and 3 put the window
// into it themselves.
func (m *llama) legacyMask(batch *Batch) legacyMask {
	mask := legacyMask{padded: batch.Padded, eager: m.run.Eager, always: m.cfg.IsGemma()}
	mask.triangle = slices.Contains([]string{"llama", "gemma", "olmo2"}, m.cfg.family) || m.cfg.IsGemma()
	if !mask.triangle && m.cfg.SlidingWindow != nil {
		mask.window = *m.cfg.SlidingWindow
	}
	return mask
}

func (m *llama) mask(window int64, batch *Batch, cache *dynamicCache) causalMask {
	return causalMask{
		window: window, eager: m.run.Eager,
		padded: batch.Padded, cached: cache != nil, mapped: m.run.Versions.mapsMasks(),
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

// llamaLayer is LlamaDecoderLayer.forward.
func (m *llama) llamaLayer(t *torch.Torch, i int, x, mask, cos, sin *torch.Var, cache *dynamicCache) torch.Value {
	f, l := t.Enter().In("layers", i+m.run.Stage.before()), &m.layers[i]
	hidden := f.Let(x)
	residual := f.Let(hidden)
	hidden.Set(m.normed(t, hidden, l.inputNorm))
	attended, weights := m.attend(t, i, hidden, mask, cos, sin, cache)
	hidden.Set(attended)
	f.Let(weights) // hidden_states, _ = self.self_attn(...): a name like any other
	hidden.Set(t.Add(residual, hidden))
	residual.Set(hidden)
	hidden.Set(m.normed(t, hidden, l.attentionNorm))
	hidden.Set(t.In("mlp", func() torch.Value { return m.feed(t, i, hidden) }))
	hidden.Set(t.Add(residual, hidden))
	return f.Return(hidden)
}

// attention is LlamaAttention.forward.
func (m *llama) attention(t *torch.Torch, i int, hidden, mask, cos, sin *torch.Var, cache *dynamicCache) (out, weights torch.Value) {
	f := t.Enter().In("self_attn")
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	q, k, v := m.project(t, f, i, hidden)
	m.rotate(t, i, q, k, cos, sin)
	cache.update(t, k, v)
	dropout := m.run.dropout(m.cfg.AttentionDropout)
	attended, weights := groupedAttention(t, groupedOptions{eager: m.run.Eager, capped: m.capsScores, copies: m.run.Versions.copiesHeads(), dropout: dropout}, q, k, v, mask)
	o := f.Let(attended)
	o.Set(t.Contiguous(t.Reshape(o, b, s, -1)))
	o.Set(t.Linear(o, m.layers[i].output))
	return f.Return(o), weights
}

// llamaProject makes queries, keys and values of LlamaAttention.
func (m *llama) llamaProject(t *torch.Torch, f *torch.Frame, i int, hidden *torch.Var) (q, k, v *torch.Var) {
	l, b, s := &m.layers[i], hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	split := func(x torch.Value, norm *torch.RMSNorm) *torch.Var {
		x = t.View(x, b, s, -1, m.cfg.HeadSize())
		if norm != nil {
			x = m.normTemporary(t, x, norm)
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
func (m *llama) normTemporary(t *torch.Torch, x torch.Value, norm *torch.RMSNorm) torch.Value {
	f := t.Enter()
	return f.Return(m.normed(t, f.Let(x), norm))
}

// llamaMLP is LlamaMLP.forward.
func (m *llama) llamaMLP(t *torch.Torch, i int, x *torch.Var) torch.Value {
	l := &m.layers[i]
	return t.Linear(t.Mul(activations[m.cfg.HiddenAct](t, t.Linear(x, l.gate)), t.Linear(x, l.up)), l.down)
}
