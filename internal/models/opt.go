package models

import (
	"errors"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var optFamily = Family{Type: "opt", tuples: true, Versions: []Versions{newest, last4, older4}, read: reads(readOPT), Heads: []Head{
	takesKeywords(head("OPTForCausalLM", SameIDs, newOPT), older4.Transformers),
	head("OPTForSequenceClassification", Classes, newOPTClassifier),
	head("OPTForQuestionAnswering", Spans, newOPTSpans),
	head("OPTModel", NoLabels, newOPTAlone),
}}

// optConfig is transformers' OPTConfig.
type optConfig struct {
	VocabSize         int64   `json:"vocab_size"`
	HiddenSize        int64   `json:"hidden_size"`
	Layers            int64   `json:"num_hidden_layers"`
	Heads             int64   `json:"num_attention_heads"`
	FFN               int64   `json:"ffn_dim"`
	MaxPositions      int64   `json:"max_position_embeddings"`
	EmbeddingSize     *int64  `json:"word_embed_proj_dim"` // nil: hidden_size
	NormBefore        bool    `json:"do_layer_norm_before"`
	NoFinalNorm       bool    `json:"_remove_final_layer_norm"`
	Bias              bool    `json:"enable_bias"`
	Affine            bool    `json:"layer_norm_elementwise_affine"`
	Dropout           float64 `json:"dropout"`
	AttentionDropout  float64 `json:"attention_dropout"`
	LayerDrop         float64 `json:"layerdrop"`
	Activation        string  `json:"activation_function"`
	UseCache          bool    `json:"use_cache"`
	TieWordEmbeddings bool    `json:"tie_word_embeddings"`
	NumLabels         int64   `json:"num_labels"`
}

func (o *optConfig) depth() (layers int64, key string) { return o.Layers, "num_hidden_layers" }

func (o *optConfig) kindOf(int64) any { return nil }

// readOPT reads a configuration.
func readOPT(c *hfconfig.Config) (*optConfig, error) {
	o := &optConfig{
		VocabSize: 50272, HiddenSize: 768, Layers: 12, Heads: 12, FFN: 3072, MaxPositions: 2048, NormBefore: true, Bias: true, Affine: true,
		Dropout: 0.1, Activation: "relu", UseCache: true, TieWordEmbeddings: true, NumLabels: 2,
	}
	if err := c.Decode(o, "init_std", "activation_dropout"); err != nil {
		return nil, err
	}
	if !o.Affine || o.LayerDrop != 0 {
		return nil, errors.New("config: an OPT with layerdrop, or without layer_norm_elementwise_affine, is not modelled")
	}
	if o.EmbeddingSize == nil {
		o.EmbeddingSize = &o.HiddenSize
	}
	_, err := activationOf(o.Activation)
	return o, err
}

// positions are those that there are embeddings for.
func (o *optConfig) positions() (most int64, key string) {
	return o.MaxPositions, "max_position_embeddings"
}

type optLayer struct {
	key, value, query, output *torch.Linear
	attentionNorm             *torch.LayerNorm
	up, down                  *torch.Linear
	norm                      *torch.LayerNorm
}

// opt is OPTModel and its OPTDecoder (transformers/models/opt/modeling_opt.py).
type opt struct {
	cfg                   *optConfig
	run                   Run
	name                  string // what the head calls the model
	embed, position       *torch.Embedding
	projectIn, projectOut *torch.Linear    // nil without
	norm                  *torch.LayerNorm // nil without
	layers                []optLayer
}

// newOPTModel makes the model, parameters in the order of its constructors. The
// table of positions has two rows more than there are positions.
func newOPTModel(t *torch.Torch, c *optConfig, r Run) *opt {
	d := r.DType
	m := &opt{cfg: c, run: r, name: "model", embed: t.NewEmbedding(c.VocabSize, *c.EmbeddingSize, d).AsInput("embed_tokens"), position: t.NewEmbedding(c.MaxPositions+2, c.HiddenSize, d)}
	if *c.EmbeddingSize != c.HiddenSize {
		m.projectOut = t.NewLinear(c.HiddenSize, *c.EmbeddingSize, false, d).Named("decoder.project_out")
		m.projectIn = t.NewLinear(*c.EmbeddingSize, c.HiddenSize, false, d).Named("decoder.project_in")
	}
	if c.NormBefore && !c.NoFinalNorm {
		m.norm = t.NewLayerNorm(c.HiddenSize, d)
	}
	for range c.Layers {
		m.layers = append(m.layers, optLayer{
			key:           t.NewLinear(c.HiddenSize, c.HiddenSize, c.Bias, d).Named("self_attn.k_proj"),
			value:         t.NewLinear(c.HiddenSize, c.HiddenSize, c.Bias, d).Named("self_attn.v_proj"),
			query:         t.NewLinear(c.HiddenSize, c.HiddenSize, c.Bias, d).Named("self_attn.q_proj"),
			output:        t.NewLinear(c.HiddenSize, c.HiddenSize, c.Bias, d).Named("self_attn.out_proj"),
			attentionNorm: t.NewLayerNorm(c.HiddenSize, d),
			up:            t.NewLinear(c.HiddenSize, c.FFN, c.Bias, d).Named("fc1"),
			down:          t.NewLinear(c.FFN, c.HiddenSize, c.Bias, d).Named("fc2"),
			norm:          t.NewLayerNorm(c.HiddenSize, d),
		})
	}
	return m
}

func newOPT(t *torch.Torch, c *optConfig, r Run) (*Model, error) {
	m := newOPTModel(t, c, r)
	head := t.NewLinear(*c.EmbeddingSize, c.VocabSize, false, r.DType).AsOutput("lm_head")
	if c.TieWordEmbeddings {
		t.Tie(head, m.embed)
	}
	return languageModel(m.trunk, head, allAtOnce), nil
}

func newOPTClassifier(t *torch.Torch, c *optConfig, r Run) (*Model, error) {
	m := newOPTModel(t, c, r)
	h := &lastTokenClassifier{trunk: m.trunk, score: t.NewLinear(*c.EmbeddingSize, c.NumLabels, false, r.DType).Named("score")}
	return &Model{Forward: h.forward}, nil
}

func newOPTSpans(t *torch.Torch, c *optConfig, r Run) (*Model, error) {
	m := newOPTModel(t, c, r)
	h := &spanClassifier{trunk: m.trunk, classifier: t.NewLinear(*c.EmbeddingSize, 2, true, r.DType).Named("qa_outputs")}
	return &Model{Forward: h.forward}, nil
}

func newOPTAlone(t *torch.Torch, c *optConfig, r Run) (*Model, error) {
	m := newOPTModel(t, c, r)
	m.name = ""
	return bare(m.trunk), nil
}

// trunk is OPTDecoder.forward. Arguments that were left out and are bound have
// their names before others.
func (m *opt) trunk(t *torch.Torch, batch *Batch) trunkOutput {
	outer := enter(t, m.name)
	f := t.Enter().In("decoder")
	var cache *dynamicCache
	if m.cfg.UseCache && !m.run.Checkpointing && !m.run.NoCache {
		cache = &dynamicCache{}
		if m.isOf451() {
			cache.form = paired
		}
	}
	ids := f.Let(t.View(torch.Borrow(batch.IDs), -1, batch.IDs.Dim(1)))
	v := m.newNames(f)
	embeds, positions := v.embeds, v.positions
	embeds.Set(t.In("embed_tokens", func() torch.Value { return t.Embedding(ids, m.embed) }))
	m.see(t, v, batch, cache)
	placed := f.Let(t.In("embed_positions", func() torch.Value { return t.Embedding(t.Integers(positions), m.position) }))
	if m.projectIn != nil {
		embeds.Set(t.Linear(embeds, m.projectIn))
	}
	hidden := f.Let(t.Add(embeds, placed))
	for i := range m.layers {
		g := t.Enter().In("layers", i)
		if m.run.Checkpointing && m.run.Train {
			hidden.Set(g.Return(m.checkpointed(t, i, hidden, v)))
		} else {
			hidden.Set(g.Return(m.layer(t, i, hidden, v.mask, cache)))
		}
	}
	if m.isOf4() {
		f.Let(hidden) // in layer_outputs, what the last layer returned
	}
	if m.norm != nil {
		hidden.Set(t.LayerNorm(hidden, m.norm))
	}
	if m.projectOut != nil {
		hidden.Set(t.Linear(hidden, m.projectOut))
	}
	out := f.Return(hidden)
	outer.End()
	return trunkOutput{hidden: out, rest: cache.tensors()}
}

// optNames are what OPTDecoder.forward calls its tensors, apart from hidden states.
type optNames struct{ given, embeds, positions, cached, mask *torch.Var }

// newNames makes them in the order in which they die. Since transformers 5.22 ones that
// stand for a mask that is not given have a name of their own.
func (m *opt) newNames(f *torch.Frame) (v optNames) {
	name := func() *torch.Var { return f.Let(torch.Value{}) }
	if !m.hidesOnes() {
		v.given = name()
	}
	v.embeds, v.positions = name(), name()
	v.cached = name() // cache_position of transformers 4
	if m.hidesOnes() {
		v.given = name()
	}
	v.mask = name()
	return v
}

// see makes positions and the mask: transformers 4 makes the mask first, and without
// masking_utils.py.
func (m *opt) see(t *torch.Torch, v optNames, batch *Batch, cache *dynamicCache) {
	length := batch.IDs.Dim(1)
	if m.isOf4() {
		v.cached.Set(t.Arange(length))
	}
	if batch.Mask != nil {
		v.given.Set(torch.Borrow(batch.Mask))
	} else {
		v.given.Set(t.Full(torch.Float32, batch.IDs.Dim(0), length))
	}
	if m.isOf4() {
		legacy := legacyMask{padded: batch.Padded, eager: m.run.Eager, triangle: true}
		v.mask.Set(legacy.update(t, v.embeds, v.cached, v.given.Tensor()))
	}
	v.positions.Set(t.Cumsum(v.given))
	v.positions.Set(t.To(t.Shift(t.Mul(v.positions, v.given)), torch.Int64))
	v.positions.Set(t.Slice(v.positions, 1, 0, length))
	if m.isOf4() {
		return
	}
	shown := v.given.Tensor()
	if m.hidesOnes() {
		shown = batch.Mask
	}
	causal := causalMask{eager: m.run.Eager, padded: batch.Padded, cached: cache != nil}
	v.mask.Set(causal.make(t, v.embeds, v.positions, shown))
}

// hidesOnes reports whether the mask is made without the ones that positions are
// counted by where no mask is given.
func (m *opt) hidesOnes() bool { return !m.run.Versions.Transformers.Before(5, 22) }

// checkpointed is a layer's call under checkpointing; in transformers 4.51 its arguments
// have no names.
func (m *opt) checkpointed(t *torch.Torch, i int, hidden *torch.Var, v optNames) torch.Value {
	if m.isOf451() {
		layer := func(in []*torch.Var) torch.Value { return m.layer(t, i, in[0], in[1], nil) }
		return t.CheckpointInputs(layer, hidden, v.mask, v.positions, v.cached)
	}
	layer := func(x *torch.Var, keywords []*torch.Var) torch.Value { return m.layer(t, i, x, keywords[0], nil) }
	return t.Checkpoint(layer, hidden, v.mask, v.positions, v.cached)
}

// isOf4 reports whether the model is one of transformers 4.
func (m *opt) isOf4() bool { return m.run.Versions.Transformers.Before(5, 0) }

// isOf451 reports whether it is one that has attention and caches of its own.
func (m *opt) isOf451() bool { return m.run.Versions.Transformers.Before(4, 57) }

// layer is OPTDecoderLayer.forward.
func (m *opt) layer(t *torch.Torch, i int, x, mask *torch.Var, cache *dynamicCache) torch.Value {
	f, l := t.Enter(), &m.layers[i]
	hidden := f.Let(x)
	residual := f.Let(hidden)
	if m.cfg.NormBefore {
		hidden.Set(t.LayerNorm(hidden, l.attentionNorm))
	}
	attended, weights := m.attention(t, l, hidden, mask, cache)
	hidden.Set(attended)
	f.Let(weights)
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.run.Train))
	hidden.Set(t.Add(residual, hidden))
	if !m.cfg.NormBefore {
		hidden.Set(t.LayerNorm(hidden, l.attentionNorm))
	}
	shape := hidden.Tensor().Shape
	hidden.Set(t.Reshape(hidden, -1, m.cfg.HiddenSize))
	residual.Set(hidden)
	if m.cfg.NormBefore {
		hidden.Set(t.LayerNorm(hidden, l.norm))
	}
	hidden.Set(t.Linear(hidden, l.up))
	hidden.Set(activations[m.cfg.Activation](t, hidden))
	hidden.Set(t.Linear(hidden, l.down))
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.run.Train))
	hidden.Set(t.View(t.Add(residual, hidden), shape...))
	if !m.cfg.NormBefore {
		hidden.Set(t.LayerNorm(hidden, l.norm))
	}
	return f.Return(hidden)
}

// attention is OPTAttention.forward, which scales queries and not scores.
func (m *opt) attention(t *torch.Torch, l *optLayer, hidden, mask *torch.Var, cache *dynamicCache) (out, weights torch.Value) {
	f := t.Enter().In("self_attn")
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	split := func(x *torch.Var) {
		x.Set(t.Transpose(t.View(x, b, -1, m.cfg.Heads, m.cfg.HiddenSize/m.cfg.Heads), 1, 2))
	}
	q := f.Let(t.Linear(hidden, l.query))
	if m.run.Eager || !m.isOf451() {
		q.Set(t.Scale(q))
	}
	split(q)
	k := f.Let(t.Linear(hidden, l.key))
	v := f.Let(t.Linear(hidden, l.value))
	split(k)
	split(v)
	cache.update(t, k, v)
	dropout := m.run.dropout(m.cfg.AttentionDropout)
	var o *torch.Var
	if m.isOf451() {
		o, weights = m.attend451(t, f, dropout, q, k, v, mask)
	} else {
		var attended torch.Value
		attended, weights = groupedAttention(t, groupedOptions{eager: m.run.Eager, dropout: dropout}, q, k, v, mask)
		o = f.Let(attended)
	}
	o.Set(t.Contiguous(t.Reshape(o, b, s, -1)))
	o.Set(t.Linear(o, l.output))
	return f.Return(o), weights
}

// attend451 is what OPTAttention.forward and OPTSdpaAttention.forward of transformers
// 4.51 do with queries, keys and values. Weights have one name, and another after their
// dropout.
func (m *opt) attend451(t *torch.Torch, f *torch.Frame, dropout float64, q, k, v, mask *torch.Var) (out *torch.Var, weights torch.Value) {
	if !m.run.Eager {
		var bias torch.X
		if mask.Tensor() != nil {
			bias = mask
		}
		out = f.Let(t.Attention(q, k, v, bias, dropout, bias == nil, false))
		out.Set(t.Contiguous(t.Transpose(out, 1, 2)))
		return out, torch.Value{}
	}
	scores := f.Let(t.MatMul(q, t.Transpose(k, 3, 2)))
	scores.Set(t.Add(scores, mask))
	scores.Set(t.To(t.Softmax(scores, torch.Float32), q.Tensor().DType))
	dropped := f.Let(t.Dropout(scores, dropout, true))
	out = f.Let(t.MatMul(dropped, v))
	out.Set(t.Contiguous(t.Transpose(out, 1, 2)))
	return out, f.Keep(dropped)
}
