package models

import (
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var gpt2Family = Family{
	Type: "gpt2", read: reads(readGPT2),
	Heads: []Head{
		head("GPT2LMHeadModel", SameIDs, newGPT2),
		needs(head("GPT2ForSequenceClassification", Classes, newGPT2Classifier), "pad_token_id"),
		head("GPT2ForTokenClassification", TokenTags, newGPT2Tokens),
		head("GPT2ForQuestionAnswering", Spans, newGPT2Spans),
		head("GPT2Model", NoLabels, newGPT2Alone),
	},
}

// gpt2Config is transformers' GPT2Config.
type gpt2Config struct {
	VocabSize         int64   `json:"vocab_size"`
	MaxPositions      int64   `json:"n_positions"`
	HiddenSize        int64   `json:"n_embd"`
	Layers            int64   `json:"n_layer"`
	Heads             int64   `json:"n_head"`
	Inner             *int64  `json:"n_inner"` // nil: four times n_embd
	Activation        string  `json:"activation_function"`
	ResidualDropout   float64 `json:"resid_pdrop"`
	EmbeddingDropout  float64 `json:"embd_pdrop"`
	AttentionDropout  float64 `json:"attn_pdrop"`
	UseCache          bool    `json:"use_cache"`
	TieWordEmbeddings bool    `json:"tie_word_embeddings"`
	ReorderAndUpcast  bool    `json:"reorder_and_upcast_attn"`
	CrossAttention    bool    `json:"add_cross_attention"`
	NumLabels         int64   `json:"num_labels"`
	// Of a head that classifies tokens.
	ClassifierDropout *float64 `json:"classifier_dropout"`
	HiddenDropout     *float64 `json:"hidden_dropout"`
	// With a padding token, batches without a mask are looked at for it.
	PadToken *float64 `json:"pad_token_id"`
}

// gpt2Names are the names that transformers takes for GPT-2's own
// (GPT2Config.attribute_map).
var gpt2Names = map[string]string{
	"hidden_size": "n_embd", "max_position_embeddings": "n_positions",
	"num_attention_heads": "n_head", "num_hidden_layers": "n_layer",
}

func (c *gpt2Config) positions() (most int64, key string) { return c.MaxPositions, "n_positions" }

func (c *gpt2Config) depth() (layers int64, key string) { return c.Layers, "n_layer" }

func (c *gpt2Config) kindOf(int64) any { return nil }

// readGPT2 reads a GPT-2 configuration.
func readGPT2(c *hfconfig.Config) (*gpt2Config, error) {
	g := &gpt2Config{
		VocabSize: 50257, MaxPositions: 1024, HiddenSize: 768, Layers: 12, Heads: 12, Activation: "gelu_new",
		ResidualDropout: 0.1, EmbeddingDropout: 0.1, AttentionDropout: 0.1, UseCache: true, TieWordEmbeddings: true, NumLabels: 2,
	}
	if err := c.Renamed(gpt2Names).Decode(g, "layer_norm_epsilon", "scale_attn_weights", "scale_attn_by_inverse_layer_idx", "n_ctx",
		"summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"); err != nil {
		return nil, err
	}
	switch {
	case g.CrossAttention:
		return nil, fmt.Errorf("config: add_cross_attention of a gpt2 is not modelled")
	case g.HiddenSize%g.Heads != 0:
		return nil, fmt.Errorf("config: n_embd is %d, which is not divisible by n_head, %d", g.HiddenSize, g.Heads)
	}
	return g, nil
}

type gpt2Block struct {
	ln1              *torch.LayerNorm
	attn, attnOutput *torch.Conv1D
	ln2              *torch.LayerNorm
	fc, proj         *torch.Conv1D
}

// gpt2 is GPT2Model, and GPT2LMHeadModel if it has a head (transformers/models/gpt2/modeling_gpt2.py).
type gpt2 struct {
	cfg  *gpt2Config
	run  Run
	name string // what the head calls the model, "" without one

	looksForPadding bool
	act             activation
	wte, wpe        *torch.Embedding
	blocks          []gpt2Block
	norm            *torch.LayerNorm
	head            *torch.Linear
}

// newGPT2Model makes GPT2Model, parameters in the order of its constructors.
func newGPT2Model(t *torch.Torch, c *gpt2Config, r Run) (*gpt2, error) {
	act, err := activationOf(c.Activation)
	if err != nil {
		return nil, err
	}
	if c.ReorderAndUpcast && r.Eager { // sdpa ignores it
		return nil, fmt.Errorf("config: reorder_and_upcast_attn of a gpt2 is not modelled")
	}
	m := &gpt2{cfg: c, run: r, name: "transformer", act: act, looksForPadding: c.PadToken != nil}
	m.wte = t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("wte")
	m.wpe = t.NewEmbedding(c.MaxPositions, c.HiddenSize, r.DType)
	inner := 4 * c.HiddenSize
	if c.Inner != nil {
		inner = *c.Inner
	}
	for range c.Layers {
		m.blocks = append(m.blocks, m.newBlock(t, inner))
	}
	m.norm = t.NewLayerNorm(c.HiddenSize, r.DType)
	return m, nil
}

// newBlock makes a GPT2Block.
func (m *gpt2) newBlock(t *torch.Torch, inner int64) gpt2Block {
	size, dtype := m.cfg.HiddenSize, m.run.DType
	return gpt2Block{
		ln1:        t.NewLayerNorm(size, dtype),
		attn:       t.NewConv1D(3*size, size, dtype).Named("attn.c_attn"),
		attnOutput: t.NewConv1D(size, size, dtype).Named("attn.c_proj"),
		ln2:        t.NewLayerNorm(size, dtype),
		fc:         t.NewConv1D(inner, size, dtype).Named("mlp.c_fc"),
		proj:       t.NewConv1D(size, inner, dtype).Named("mlp.c_proj"),
	}
}

func newGPT2(t *torch.Torch, c *gpt2Config, r Run) (*Model, error) {
	m, err := newGPT2Model(t, c, r)
	if err != nil {
		return nil, err
	}
	m.head = t.NewLinear(c.HiddenSize, c.VocabSize, false, r.DType).AsOutput("lm_head")
	if c.TieWordEmbeddings {
		t.Tie(m.head, m.wte)
	}
	return &Model{Forward: m.forward}, nil
}

func newGPT2Classifier(t *torch.Torch, c *gpt2Config, r Run) (*Model, error) {
	m, err := newGPT2Model(t, c, r)
	if err != nil {
		return nil, err
	}
	m.looksForPadding = true // it needs a padding token
	h := &lastTokenClassifier{trunk: m.transformer, score: t.NewLinear(c.HiddenSize, c.NumLabels, false, r.DType).Named("score")}
	return &Model{Forward: h.forward}, nil
}

func newGPT2Tokens(t *torch.Torch, c *gpt2Config, r Run) (*Model, error) {
	m, err := newGPT2Model(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &tokenClassifier{
		trunk: m.transformer, name: "classifier", classifier: t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier"),
		dropout: decoderDropout(c.ClassifierDropout, c.HiddenDropout), train: r.Train,
	}
	return &Model{Forward: h.forward}, nil
}

func newGPT2Spans(t *torch.Torch, c *gpt2Config, r Run) (*Model, error) {
	m, err := newGPT2Model(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &spanClassifier{trunk: m.transformer, classifier: t.NewLinear(c.HiddenSize, 2, true, r.DType).Named("qa_outputs")}
	return &Model{Forward: h.forward}, nil
}

func newGPT2Alone(t *torch.Torch, c *gpt2Config, r Run) (*Model, error) {
	m, err := newGPT2Model(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = ""
	return bare(m.transformer), nil
}

func (m *gpt2) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	o := m.transformer(t, batch)
	h := f.Let(o.hidden)
	logits := f.Let(t.In("lm_head", func() torch.Value { return t.Linear(h, m.head) }))
	out := Output{}
	if batch.Labels != nil {
		loss := f.Let(causalLMLoss(t, logits, batch))
		out.Loss = f.Keep(loss)
	}
	out.Logits, out.Cache = f.Keep(logits), o.rest
	f.End()
	return out
}

// transformer is GPT2Model.
func (m *gpt2) transformer(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	var cache *dynamicCache
	if m.cfg.UseCache && !m.run.Checkpointing && !m.run.NoCache {
		cache = &dynamicCache{}
	}
	if m.looksForPadding && batch.Mask == nil {
		lookForPadding(t, batch.IDs)
	}
	f.Let(torch.Value{}) // attention_mask
	positions, embeds := f.Let(torch.Value{}), f.Let(torch.Value{})
	embeds.Set(t.In("wte", func() torch.Value { return t.Embedding(torch.Borrow(batch.IDs), m.wte) }))
	positions.Set(positionsOf(t, batch.IDs.Dim(1)))
	positioned := f.Let(t.In("wpe", func() torch.Value { return t.Embedding(positions, m.wpe) }))
	hidden := f.Let(t.Add(embeds, positioned))
	mask := f.Let(causalMask{eager: m.run.Eager, padded: batch.Padded, cached: cache != nil}.make(t, embeds, positions, batch.Mask))
	hidden.Set(t.Dropout(hidden, m.cfg.EmbeddingDropout, m.run.Train))
	for i := range m.blocks {
		if m.run.Checkpointing && m.run.Train {
			hidden.Set(m.checkpointed(t, i, hidden, mask, positions))
		} else {
			hidden.Set(m.block(t, i, hidden, mask, cache))
		}
	}
	hidden.Set(t.In("ln_f", func() torch.Value { return t.LayerNorm(hidden, m.norm) }))
	hidden.Set(t.View(hidden, hidden.Tensor().Shape...))
	return trunkOutput{hidden: f.Return(hidden), rest: cache.tensors()}
}

// checkpointed is a block's call under checkpointing.
func (m *gpt2) checkpointed(t *torch.Torch, i int, hidden, mask, positions *torch.Var) torch.Value {
	block := func(x *torch.Var, kept []*torch.Var) torch.Value { return m.block(t, i, x, kept[0], nil) }
	return t.Checkpoint(block, hidden, mask, positions)
}

// lookForPadding is warn_if_padding_and_no_attention_mask: pad_token_id in
// input_ids[:, [-1, 0]] (transformers/modeling_utils.py).
func lookForPadding(t *torch.Torch, ids *torch.Tensor) {
	columns := t.Full(torch.Int64, 2)
	ends := t.Full(torch.Int64, ids.Dim(0), 2)
	t.Drop(columns)
	equal := t.Compare(ends.Borrow())
	any := t.All(equal.Borrow())
	t.Drop(equal)
	t.Drop(any)
	t.Drop(ends)
}

func (m *gpt2) block(t *torch.Torch, i int, x *torch.Var, mask *torch.Var, cache *dynamicCache) torch.Value {
	f, b := t.Enter(x).In("h", i), &m.blocks[i]
	hidden := f.Let(x)
	residual := f.Let(x)
	hidden.Set(t.LayerNorm(hidden, b.ln1))
	output, weights := m.attention(t, b, hidden, mask, cache)
	attended := f.Let(output)
	f.Let(weights) // attn_output, _ = self.attn(...)
	hidden.Set(t.Add(attended, residual))
	residual.Set(hidden)
	hidden.Set(t.LayerNorm(hidden, b.ln2))
	fed := f.Let(m.mlp(t, b, hidden))
	hidden.Set(t.Add(residual, fed))
	return f.Return(hidden)
}

func (m *gpt2) attention(t *torch.Torch, b *gpt2Block, hidden *torch.Var, mask *torch.Var, cache *dynamicCache) (output, weights torch.Value) {
	f := t.Enter(hidden).In("attn")
	shape := []int64{hidden.Tensor().Shape[0], hidden.Tensor().Shape[1], -1, m.cfg.HiddenSize / m.cfg.Heads}
	parts := t.Split(t.Conv1D(hidden, b.attn), m.cfg.HiddenSize, 2)
	query, key, value := f.Let(parts[0]), f.Let(parts[1]), f.Let(parts[2])
	for _, x := range []*torch.Var{key, value, query} {
		x.Set(t.Transpose(t.View(x, shape...), 1, 2))
	}
	cache.update(t, key, value)
	var attended torch.Value
	if m.run.Eager {
		attended, weights = m.eager(t, query, key, value, mask)
	} else {
		attended = m.sdpa(t, query, key, value, mask)
	}
	out, kept := f.Let(attended), f.Let(weights)
	out.Set(t.Contiguous(t.Reshape(out, shape[0], shape[1], -1)))
	out.Set(t.Conv1D(out, b.attnOutput))
	out.Set(t.Dropout(out, m.cfg.ResidualDropout, m.run.Train))
	weights = f.Keep(kept)
	return f.Return(out), weights
}

// sdpa is sdpa_attention_forward (transformers/integrations/sdpa_attention.py).
func (m *gpt2) sdpa(t *torch.Torch, q, k, v, mask *torch.Var) torch.Value {
	p := m.run.dropout(m.cfg.AttentionDropout)
	if mask.Tensor() == nil {
		causal := q.Tensor().Dim(2) > 1
		return t.Contiguous(t.Transpose(t.Attention(q, k, v, nil, p, causal, false), 1, 2))
	}
	return t.Contiguous(t.Transpose(t.Attention(q, k, v, mask, p, false, false), 1, 2))
}

// eager is eager_attention_forward, which returns the weights too.
func (m *gpt2) eager(t *torch.Torch, q, k, v, mask *torch.Var) (out, weights torch.Value) {
	f := t.Enter()
	w := f.Let(t.MatMul(q, t.Transpose(k, -1, -2)))
	w.Set(t.Scale(w))
	if mask.Tensor() != nil {
		w.Set(t.Add(w, mask))
	}
	w.Set(t.Softmax(w, torch.NoDType))
	w.Set(t.To(w, v.Tensor().DType))
	w.Set(t.Dropout(w, m.cfg.AttentionDropout, m.run.Train))
	o := f.Let(t.Transpose(t.MatMul(w, v), 1, 2))
	weights = f.Keep(w)
	return f.Return(o), weights
}

func (m *gpt2) mlp(t *torch.Torch, b *gpt2Block, x *torch.Var) torch.Value {
	f := t.Enter(x).In("mlp")
	hidden := f.Let(t.Conv1D(x, b.fc))
	hidden.Set(m.act(t, hidden))
	hidden.Set(t.Conv1D(hidden, b.proj))
	hidden.Set(t.Dropout(hidden, m.cfg.ResidualDropout, m.run.Train))
	return f.Return(hidden)
}
