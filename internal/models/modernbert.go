package models

import (
	"errors"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var modernBertFamily = Family{Type: "modernbert", read: reads(readModernBert), Heads: []Head{
	head("ModernBertForSequenceClassification", Classes, newModernBert),
	head("ModernBertForTokenClassification", TokenTags, newModernBertTokens),
	head("ModernBertForQuestionAnswering", Spans, newModernBertSpans),
	head("ModernBertModel", NoLabels, newModernBertAlone),
}}

// modernBertConfig is transformers' ModernBertConfig.
type modernBertConfig struct {
	VocabSize            int64    `json:"vocab_size"`
	HiddenSize           int64    `json:"hidden_size"`
	IntermediateSize     int64    `json:"intermediate_size"`
	Layers               int64    `json:"num_hidden_layers"`
	Heads                int64    `json:"num_attention_heads"`
	Activation           string   `json:"hidden_activation"`
	NormBias             bool     `json:"norm_bias"`
	AttentionBias        bool     `json:"attention_bias"`
	MLPBias              bool     `json:"mlp_bias"`
	AttentionDropout     float64  `json:"attention_dropout"`
	EmbeddingDropout     float64  `json:"embedding_dropout"`
	MLPDropout           float64  `json:"mlp_dropout"`
	LocalAttention       int64    `json:"local_attention"`
	FullEvery            int64    `json:"global_attn_every_n_layers"`
	LayerTypes           []string `json:"layer_types"`
	Pooling              string   `json:"classifier_pooling"`
	ClassifierDropout    float64  `json:"classifier_dropout"`
	ClassifierBias       bool     `json:"classifier_bias"`
	ClassifierActivation string   `json:"classifier_activation"`
	NumLabels            int64    `json:"num_labels"`
}

// The ways of pooling what is classified.
const (
	poolFirst = "cls"
	poolMean  = "mean"
)

// modernBertIgnored are keys that say nothing about memory, or nothing but of the
// head that predicts masked words.
var modernBertIgnored = []string{
	"max_position_embeddings", "initializer_cutoff_factor", "norm_eps", "layer_norm_eps", "cls_token_id", "global_rope_theta", "local_rope_theta",
	"decoder_bias", "deterministic_flash_attn", "sparse_prediction", "sparse_pred_ignore_index", "tie_word_embeddings", "reference_compile",
	"repad_logits_with_grad", "position_embedding_type", "unpad_inputs", "sentence_transformers",
}

func (c *modernBertConfig) depth() (layers int64, key string) { return c.Layers, "num_hidden_layers" }

func (c *modernBertConfig) kindOf(layer int64) any { return c.LayerTypes[layer] }

// readModernBert reads a configuration, and completes it as __post_init__ does.
func readModernBert(c *hfconfig.Config) (*modernBertConfig, error) {
	b := &modernBertConfig{
		VocabSize: 50368, HiddenSize: 768, IntermediateSize: 1152, Layers: 22, Heads: 12, Activation: "gelu", LocalAttention: 128, FullEvery: 3,
		Pooling: poolFirst, ClassifierActivation: "gelu", NumLabels: 2,
	}
	if err := c.Decode(b, modernBertIgnored...); err != nil {
		return nil, err
	}
	if b.LayerTypes == nil {
		for i := range b.Layers {
			kind := slidingAttention
			if i%b.FullEvery == 0 {
				kind = fullAttention
			}
			b.LayerTypes = append(b.LayerTypes, kind)
		}
	}
	if int64(len(b.LayerTypes)) < b.Layers {
		return nil, invalid.At("layer_types", errors.New("config: layer_types of a modernbert needs one entry per layer"))
	}
	if b.Pooling != poolFirst && b.Pooling != poolMean {
		return nil, invalid.At("classifier_pooling", errors.New("config: classifier_pooling must be cls or mean"))
	}
	for _, name := range []string{b.Activation, b.ClassifierActivation} {
		if _, err := activationOf(name); err != nil {
			return nil, err
		}
	}
	return b, errors.Join(rotates(b.HiddenSize/b.Heads), checkEncoder(b.NumLabels, 0, b.AttentionDropout, b.EmbeddingDropout, b.MLPDropout, b.ClassifierDropout))
}

type modernBertLayer struct {
	attentionNorm         *torch.LayerNorm // nil: the first layer has none
	queryKeyValue, output *torch.Linear
	norm                  *torch.LayerNorm
	input, feedOutput     *torch.Linear
	sliding               bool
	rotary                int // which of the model's
}

// modernBert is ModernBertModel
// (transformers/models/modernbert/modeling_modernbert.py).
type modernBert struct {
	cfg       *modernBertConfig
	run       Run
	name      string // what the head calls the model
	embed     *torch.Embedding
	embedNorm *torch.LayerNorm
	layers    []modernBertLayer
	norm      *torch.LayerNorm
	rotaries  []*rotary // of full and of sliding attention
}

// newNorm makes a norm that may have no bias.
func (c *modernBertConfig) newNorm(t *torch.Torch, dtype torch.DType) *torch.LayerNorm {
	if c.NormBias {
		return t.NewLayerNorm(c.HiddenSize, dtype)
	}
	return &torch.LayerNorm{Weight: t.Parameter(dtype, c.HiddenSize)}
}

func newModernBertModel(t *torch.Torch, c *modernBertConfig, r Run) *modernBert {
	m := &modernBert{cfg: c, run: r, name: "model", embed: t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("tok_embeddings"), embedNorm: c.newNorm(t, r.DType)}
	for i := range c.Layers {
		var l modernBertLayer
		if i > 0 {
			l.attentionNorm = c.newNorm(t, r.DType)
		}
		l.queryKeyValue = t.NewLinear(c.HiddenSize, 3*c.HiddenSize, c.AttentionBias, r.DType).Named("attn.Wqkv")
		l.output = t.NewLinear(c.HiddenSize, c.HiddenSize, c.AttentionBias, r.DType).Named("attn.Wo")
		l.norm = c.newNorm(t, r.DType)
		l.input = t.NewLinear(c.HiddenSize, 2*c.IntermediateSize, c.MLPBias, r.DType).Named("mlp.Wi")
		l.feedOutput = t.NewLinear(c.IntermediateSize, c.HiddenSize, c.MLPBias, r.DType).Named("mlp.Wo")
		l.sliding = c.LayerTypes[i] == slidingAttention
		m.layers = append(m.layers, l)
	}
	m.norm = c.newNorm(t, r.DType)
	m.makeRotaries(t)
	return m
}

// makeRotaries makes rotary positions for each kind of attention that there is.
func (m *modernBert) makeRotaries(t *torch.Torch) {
	for _, sliding := range []bool{false, true} {
		found := false
		for i := range m.layers {
			if m.layers[i].sliding == sliding {
				m.layers[i].rotary, found = len(m.rotaries), true
			}
		}
		if found {
			m.rotaries = append(m.rotaries, newRotary(t, DefaultRope, m.cfg.HiddenSize/m.cfg.Heads))
		}
	}
	initRotaries(t, m.rotaries)
}

// trunk is ModernBertModel.forward.
func (m *modernBert) trunk(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	positions := f.Let(t.Unsqueeze(t.Arange(batch.IDs.Dim(1)), 0))
	hidden := f.Let(t.In("embeddings", func() torch.Value {
		return t.Dropout(t.LayerNorm(t.Embedding(torch.Borrow(batch.IDs), m.embed), m.embedNorm), m.cfg.EmbeddingDropout, m.run.Train)
	}))
	full, sliding := f.Let(torch.Value{}), f.Let(torch.Value{})
	f.Let(hidden) // in mask_kwargs, which lives on
	given := padding{mask: batch.Mask, ones: !batch.Padded}
	full.Set(bidirectionalMask(t, given, hidden, m.run.Eager))
	sliding.Set(bidirectionalWindowMask(t, given, m.cfg.LocalAttention/2, hidden, m.run.Eager))
	sines, cosines := make([]*torch.Var, len(m.rotaries)), make([]*torch.Var, len(m.rotaries))
	for i, r := range m.rotaries {
		c, s := r.angles(t, hidden, positions)
		sines[i], cosines[i] = f.Let(s), f.Let(c) // a tuple drops its last element first
	}
	for i := range m.layers {
		mask, sin, cos := full, sines[m.layers[i].rotary], cosines[m.layers[i].rotary]
		if m.layers[i].sliding {
			mask = sliding
		}
		if m.run.Checkpointing && m.run.Train {
			layer := func(x *torch.Var, k []*torch.Var) torch.Value { return m.layer(t, i, x, k[0], k[2], k[1]) }
			hidden.Set(t.Checkpoint(layer, hidden, mask, sin, cos))
		} else {
			hidden.Set(m.layer(t, i, hidden, mask, cos, sin))
		}
	}
	hidden.Set(t.In("final_norm", func() torch.Value { return t.LayerNorm(hidden, m.norm) }))
	return trunkOutput{hidden: f.Return(hidden)}
}

// layer is ModernBertEncoderLayer.forward.
func (m *modernBert) layer(t *torch.Torch, i int, x, mask, cos, sin *torch.Var) torch.Value {
	f, l := t.Enter().In("layers", i), &m.layers[i]
	hidden := f.Let(x)
	var normed torch.Value
	if l.attentionNorm != nil {
		normed = t.LayerNorm(hidden, l.attentionNorm)
	} else {
		normed = t.Hold(hidden)
	}
	attended, weights := m.attention(t, l, normed, mask, cos, sin)
	attention := f.Let(attended)
	f.Let(weights)
	hidden.Set(t.Add(hidden, attention))
	hidden.Set(t.Add(hidden, m.mlp(t, l, t.LayerNorm(hidden, l.norm))))
	return f.Return(hidden)
}

// attention is ModernBertAttention.forward, called with a temporary.
func (m *modernBert) attention(t *torch.Torch, l *modernBertLayer, x torch.Value, mask, cos, sin *torch.Var) (out, weights torch.Value) {
	f := t.Enter(x).In("attn")
	hidden := f.Let(x.Borrow())
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	joined := f.Let(t.Linear(hidden, l.queryKeyValue))
	joined.Set(t.View(joined, b, s, 3, -1, m.cfg.HiddenSize/m.cfg.Heads))
	parts := t.Unbind(joined, -3)
	q, k, v := f.Let(parts[0]), f.Let(parts[1]), f.Let(parts[2])
	for _, x := range []*torch.Var{q, k, v} {
		x.Set(t.Transpose(x, 1, 2))
	}
	rotateInFloat32(t, q, k, cos, sin)
	dropout := m.run.dropout(m.cfg.AttentionDropout)
	attended, weights := groupedAttention(t, groupedOptions{eager: m.run.Eager, everywhere: true, dropout: dropout}, q, k, v, mask)
	o := f.Let(attended)
	o.Set(t.Contiguous(t.Reshape(o, b, s, -1)))
	o.Set(t.Dropout(t.Linear(o, l.output), dropout, true))
	return f.Return(o), weights
}

// rotateInFloat32 is apply_rotary_pos_emb, which computes in float32.
func rotateInFloat32(t *torch.Torch, q, k, cosines, sines *torch.Var) {
	f := t.Enter()
	dtype := q.Tensor().DType
	cos, sin := f.Let(t.Unsqueeze(cosines, 1)), f.Let(t.Unsqueeze(sines, 1))
	rotate := func(x *torch.Var) *torch.Var {
		turned := t.Mul(t.To(x, torch.Float32), cos)
		g := t.Enter()
		half := g.Return(rotateHalf(t, g.Let(t.To(x, torch.Float32))))
		return f.Let(t.Add(turned, t.Mul(half, sin)))
	}
	wideQ, wideK := rotate(q), rotate(k)
	newQ, newK := t.To(wideQ, dtype), t.To(wideK, dtype)
	f.End()
	q.Set(newQ)
	k.Set(newK)
}

// mlp is ModernBertMLP.forward, called with a temporary.
func (m *modernBert) mlp(t *torch.Torch, l *modernBertLayer, x torch.Value) torch.Value {
	f := t.Enter(x).In("mlp")
	parts := t.Split(t.Linear(x.Borrow(), l.input), m.cfg.IntermediateSize, -1)
	input, gate := f.Let(parts[0]), f.Let(parts[1])
	product := t.Mul(activations[m.cfg.Activation](t, input), gate)
	return f.Return(t.Linear(t.Dropout(product, m.cfg.MLPDropout, m.run.Train), l.feedOutput))
}
