package models

import (
	"errors"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var gptNeoXFamily = Family{Type: "gpt_neox", Versions: []Versions{newest, last4, older4}, read: reads(readGPTNeoX), Heads: []Head{
	takesKeywords(head("GPTNeoXForCausalLM", SameIDs, newGPTNeoX), older4.Transformers),
	needs(head("GPTNeoXForSequenceClassification", Classes, newGPTNeoXClassifier), "pad_token_id"),
	head("GPTNeoXForTokenClassification", TokenTags, newGPTNeoXTokens),
	head("GPTNeoXForQuestionAnswering", Spans, newGPTNeoXSpans),
	head("GPTNeoXModel", NoLabels, newGPTNeoXAlone),
}}

// gptNeoXConfig is transformers' GPTNeoXConfig, of Pythia too.
type gptNeoXConfig struct {
	VocabSize         int64           `json:"vocab_size"`
	HiddenSize        int64           `json:"hidden_size"`
	IntermediateSize  int64           `json:"intermediate_size"`
	Layers            int64           `json:"num_hidden_layers"`
	Heads             int64           `json:"num_attention_heads"`
	HiddenAct         string          `json:"hidden_act"`
	AttentionDropout  float64         `json:"attention_dropout"`
	HiddenDropout     float64         `json:"hidden_dropout"`
	ClassifierDropout float64         `json:"classifier_dropout"`
	AttentionBias     bool            `json:"attention_bias"`
	ParallelResidual  bool            `json:"use_parallel_residual"`
	TieWordEmbeddings bool            `json:"tie_word_embeddings"`
	UseCache          bool            `json:"use_cache"`
	RotaryPart        float64         `json:"rotary_pct"`
	RopeScaling       *RopeParameters `json:"rope_scaling"`
	MaxPositions      int64           `json:"max_position_embeddings"`
	NumLabels         int64           `json:"num_labels"`
}

func (g *gptNeoXConfig) depth() (layers int64, key string) { return g.Layers, "num_hidden_layers" }

func (g *gptNeoXConfig) kindOf(int64) any { return nil }

// readGPTNeoX reads a configuration.
func readGPTNeoX(c *hfconfig.Config) (*gptNeoXConfig, error) {
	g := &gptNeoXConfig{
		VocabSize: 50432, HiddenSize: 6144, IntermediateSize: 24576, Layers: 44, Heads: 64, MaxPositions: 2048,
		HiddenAct: "gelu", ClassifierDropout: 0.1, AttentionBias: true, ParallelResidual: true, UseCache: true, RotaryPart: 0.25, NumLabels: 2,
	}
	if err := c.Decode(g, "layer_norm_eps", "rotary_emb_base"); err != nil {
		return nil, err
	}
	if g.RopeScaling != nil {
		return nil, invalid.At("rope_scaling", errors.New("config: rope_scaling of a gpt_neox is not modelled"))
	}
	if _, err := activationOf(g.HiddenAct); err != nil {
		return nil, err
	}
	return g, rotates(g.rotarySize())
}

// rotarySize is how much of a head is rotated.
func (g *gptNeoXConfig) rotarySize() int64 {
	return int64(float64(g.HiddenSize/g.Heads) * g.RotaryPart)
}

type gptNeoXLayer struct {
	inputNorm, attentionNorm *torch.LayerNorm
	queryKeyValue, dense     *torch.Linear
	up, down                 *torch.Linear
}

// gptNeoX is GPTNeoXModel (transformers/models/gpt_neox/modeling_gpt_neox.py).
type gptNeoX struct {
	cfg    *gptNeoXConfig
	run    Run
	name   string // what the head calls the model
	embed  *torch.Embedding
	layers []gptNeoXLayer
	norm   *torch.LayerNorm
	rotary *rotary
}

func newGPTNeoXModel(t *torch.Torch, c *gptNeoXConfig, r Run) *gptNeoX {
	m := &gptNeoX{cfg: c, run: r, name: "gpt_neox", embed: t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("embed_in")}
	for range c.Layers {
		m.layers = append(m.layers, gptNeoXLayer{
			inputNorm:     t.NewLayerNorm(c.HiddenSize, r.DType),
			attentionNorm: t.NewLayerNorm(c.HiddenSize, r.DType),
			queryKeyValue: t.NewLinear(c.HiddenSize, 3*c.HiddenSize, c.AttentionBias, r.DType).Named("attention.query_key_value"),
			dense:         t.NewLinear(c.HiddenSize, c.HiddenSize, c.AttentionBias, r.DType).Named("attention.dense"),
			up:            t.NewLinear(c.HiddenSize, c.IntermediateSize, true, r.DType).Named("mlp.dense_h_to_4h"),
			down:          t.NewLinear(c.IntermediateSize, c.HiddenSize, true, r.DType).Named("mlp.dense_4h_to_h"),
		})
	}
	m.norm = t.NewLayerNorm(c.HiddenSize, r.DType)
	if m.isOf4() {
		m.rotary = newRotary4(t, DefaultRope, c.rotarySize())
	} else {
		m.rotary = newRotary(t, DefaultRope, c.rotarySize()).of(r.Versions)
		m.rotary.initWeights(t)
	}
	return m
}

func newGPTNeoX(t *torch.Torch, c *gptNeoXConfig, r Run) (*Model, error) {
	m := newGPTNeoXModel(t, c, r)
	head := t.NewLinear(c.HiddenSize, c.VocabSize, false, r.DType).AsOutput("lm_head")
	if c.TieWordEmbeddings {
		t.Tie(head, m.embed)
	}
	m.rotary.cast(t, r.DType)
	return languageModel(m.trunk, head, allOfSlices), nil
}

func newGPTNeoXClassifier(t *torch.Torch, c *gptNeoXConfig, r Run) (*Model, error) {
	m := newGPTNeoXModel(t, c, r)
	h := &lastTokenClassifier{trunk: m.trunk, score: t.NewLinear(c.HiddenSize, c.NumLabels, false, r.DType).Named("score")}
	m.rotary.cast(t, r.DType)
	return &Model{Forward: h.forward}, nil
}

func newGPTNeoXTokens(t *torch.Torch, c *gptNeoXConfig, r Run) (*Model, error) {
	m := newGPTNeoXModel(t, c, r)
	h := &tokenClassifier{
		trunk: m.trunk, name: "classifier", classifier: t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier"),
		dropout: c.ClassifierDropout, train: r.Train, inFloat32: true,
	}
	m.rotary.cast(t, r.DType)
	return &Model{Forward: h.forward}, nil
}

func newGPTNeoXSpans(t *torch.Torch, c *gptNeoXConfig, r Run) (*Model, error) {
	m := newGPTNeoXModel(t, c, r)
	h := &spanClassifier{trunk: m.trunk, classifier: t.NewLinear(c.HiddenSize, 2, true, r.DType).Named("qa_outputs"), apart: true}
	m.rotary.cast(t, r.DType)
	return &Model{Forward: h.forward}, nil
}

func newGPTNeoXAlone(t *torch.Torch, c *gptNeoXConfig, r Run) (*Model, error) {
	m := newGPTNeoXModel(t, c, r)
	m.name = ""
	m.rotary.cast(t, r.DType)
	return bare(m.trunk), nil
}

// trunk is GPTNeoXModel.forward.
func (m *gptNeoX) trunk(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	var cache *dynamicCache
	if m.cfg.UseCache && !m.run.Checkpointing && !m.run.NoCache {
		cache = newDynamicCache(m.run.Versions)
	}
	positions := f.Let(torch.Value{})
	embeds := f.Let(t.In("embed_in", func() torch.Value { return t.Embedding(torch.Borrow(batch.IDs), m.embed) }))
	positions.Set(positionsOf(t, batch.IDs.Dim(1), m.run.Versions))
	if m.isOf4() {
		f.Let(positions) // as cache_position
	}
	mask := f.Let(m.mask(t, batch, cache, embeds, positions))
	hidden := f.Let(t.Dropout(embeds, m.cfg.HiddenDropout, m.run.Train))
	c, s := m.rotary.angles(t, hidden, positions)
	sin, cos := f.Let(s), f.Let(c) // a tuple drops its last element first
	for i := range m.layers {
		if m.run.Checkpointing && m.run.Train {
			hidden.Set(m.checkpointed(t, i, hidden, mask, positions, cos, sin))
		} else {
			hidden.Set(m.layer(t, i, hidden, mask, cos, sin, cache))
		}
	}
	if m.isOf4() {
		f.Let(hidden) // in outputs, what the last layer returned
	}
	hidden.Set(t.In("final_layer_norm", func() torch.Value { return t.LayerNorm(hidden, m.norm) }))
	return trunkOutput{hidden: f.Return(hidden), rest: cache.tensors()}
}

// mask is the causal mask of a batch.
func (m *gptNeoX) mask(t *torch.Torch, batch *Batch, cache *dynamicCache, embeds, positions *torch.Var) torch.Value {
	if m.run.Versions.convertsMasks() {
		return legacyMask{padded: batch.Padded, eager: m.run.Eager, triangle: true}.update(t, embeds, positions, batch.Mask)
	}
	causal := causalMask{eager: m.run.Eager, padded: batch.Padded, cached: cache != nil, mapped: m.run.Versions.mapsMasks()}
	return causal.make(t, embeds, positions, batch.Mask)
}

// checkpointed is a layer's call under checkpointing; in transformers 4.51 its arguments
// have no names (see llama.checkpointed4).
func (m *gptNeoX) checkpointed(t *torch.Torch, i int, hidden, mask, positions, cos, sin *torch.Var) torch.Value {
	if m.run.Versions.Transformers.Before(4, 57) {
		layer := func(in []*torch.Var) torch.Value { return m.layer(t, i, in[0], in[1], in[4], in[3], nil) }
		return t.CheckpointInputs(layer, hidden, mask, positions, sin, cos)
	}
	layer := func(x *torch.Var, k []*torch.Var) torch.Value { return m.layer(t, i, x, k[0], k[3], k[2], nil) }
	return t.Checkpoint(layer, hidden, mask, positions, sin, cos)
}

// isOf4 reports whether the model is one of transformers 4.
func (m *gptNeoX) isOf4() bool { return m.run.Versions.Transformers.Before(5, 0) }

// layer is GPTNeoXLayer.forward.
func (m *gptNeoX) layer(t *torch.Torch, i int, x, mask, cos, sin *torch.Var, cache *dynamicCache) torch.Value {
	f, l := t.Enter().In("layers", i), &m.layers[i]
	hidden := f.Let(x)
	attended, weights := m.attention(t, l, t.LayerNorm(hidden, l.inputNorm), mask, cos, sin, cache)
	attention := f.Let(attended)
	f.Let(weights)
	attention.Set(t.Dropout(attention, m.cfg.HiddenDropout, m.run.Train))
	if m.cfg.ParallelResidual {
		mlp := f.Let(m.mlp(t, l, t.LayerNorm(hidden, l.attentionNorm)))
		mlp.Set(t.Dropout(mlp, m.cfg.HiddenDropout, m.run.Train))
		hidden.Set(t.Add(t.Add(mlp, attention), hidden))
		return f.Return(hidden)
	}
	attention.Set(t.Add(attention, hidden))
	mlp := f.Let(m.mlp(t, l, t.LayerNorm(attention, l.attentionNorm)))
	mlp.Set(t.Dropout(mlp, m.cfg.HiddenDropout, m.run.Train))
	hidden.Set(t.Add(mlp, attention))
	return f.Return(hidden)
}

// attention is GPTNeoXAttention.forward, called with a temporary.
func (m *gptNeoX) attention(t *torch.Torch, l *gptNeoXLayer, x torch.Value, mask, cos, sin *torch.Var, cache *dynamicCache) (out, weights torch.Value) {
	f := t.Enter(x).In("attention")
	hidden := f.Let(x.Borrow())
	b, s, size := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1), m.cfg.HiddenSize/m.cfg.Heads
	joined := f.Let(t.Transpose(t.View(t.Linear(hidden, l.queryKeyValue), b, s, -1, 3*size), 1, 2))
	parts := t.Split(joined, size, -1)
	q, k, v := f.Let(parts[0]), f.Let(parts[1]), f.Let(parts[2])
	rotateFirst(t, q, k, cos, sin)
	cache.update(t, k, v)
	dropout := m.run.dropout(m.cfg.AttentionDropout)
	attended, weights := groupedAttention(t, groupedOptions{eager: m.run.Eager, copies: m.run.Versions.copiesHeads(), dropout: dropout}, q, k, v, mask)
	o := f.Let(attended)
	o.Set(t.Contiguous(t.Reshape(o, b, s, -1)))
	o.Set(t.Linear(o, l.dense))
	return f.Return(o), weights
}

// mlp is GPTNeoXMLP.forward, called with a temporary.
func (m *gptNeoX) mlp(t *torch.Torch, l *gptNeoXLayer, x torch.Value) torch.Value {
	f := t.Enter(x).In("mlp")
	hidden := f.Let(x.Borrow())
	hidden.Set(t.Linear(hidden, l.up))
	hidden.Set(activations[m.cfg.HiddenAct](t, hidden))
	hidden.Set(t.Linear(hidden, l.down))
	return f.Return(hidden)
}

// rotateFirst is apply_rotary_pos_emb of GPT-NeoX: the first part of each head is
// rotated, and joined with the rest when both are.
func rotateFirst(t *torch.Torch, q, k, cosines, sines *torch.Var) {
	f := t.Enter()
	cos, sin := f.Let(t.Unsqueeze(cosines, 1)), f.Let(t.Unsqueeze(sines, 1))
	n := cos.Tensor().Dim(-1)
	part := func(x *torch.Var) (turning, rest *torch.Var) {
		return f.Let(t.SliceTo(x, -1, n)), f.Let(t.Slice(x, -1, n, x.Tensor().Dim(-1)))
	}
	turningQ, restQ := part(q)
	turningK, restK := part(k)
	rotate := func(x *torch.Var) *torch.Var {
		return f.Let(t.Add(t.Mul(x, cos), t.Mul(rotateHalf(t, x), sin)))
	}
	newQ, newK := rotate(turningQ), rotate(turningK)
	newQ.Set(t.Cat(-1, newQ, restQ))
	newK.Set(t.Cat(-1, newK, restK))
	keptQ, keptK := f.Keep(newQ), f.Keep(newK)
	f.End()
	q.Set(keptQ)
	k.Set(keptK)
}
