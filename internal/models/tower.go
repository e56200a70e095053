package models

import (
	"cmp"
	"fmt"
	"math"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

// This file is what CLIP and SigLIP have in common: two towers of transformer
// layers, one for texts and one for images
// (transformers/models/clip/modeling_clip.py, siglip/modeling_siglip.py).

// towerConfig is what CLIPTextConfig, CLIPVisionConfig and SigLIP's have in common.
type towerConfig struct {
	HiddenSize       int64   `json:"hidden_size"`
	IntermediateSize int64   `json:"intermediate_size"`
	Layers           int64   `json:"num_hidden_layers"`
	Heads            int64   `json:"num_attention_heads"`
	HiddenAct        string  `json:"hidden_act"`
	AttentionDropout float64 `json:"attention_dropout"`
}

// textConfig is that of the tower for texts.
type textConfig struct {
	towerConfig
	VocabSize      int64  `json:"vocab_size"`
	MaxPositions   int64  `json:"max_position_embeddings"`
	EndOfText      any    `json:"eos_token_id"`
	ProjectionSize *int64 `json:"projection_size"` // of SigLIP; nil: hidden_size
}

// imageConfig is that of the tower for images.
type imageConfig struct {
	towerConfig
	ImageSize int64 `json:"image_size"`
	PatchSize int64 `json:"patch_size"`
	Channels  int64 `json:"num_channels"`
	UseHead   bool  `json:"vision_use_head"` // of SigLIP
}

// ofGeneration are keys that older configurations have within them: they say
// nothing about memory.
var ofGeneration = []string{
	"bad_words_ids", "begin_suppress_tokens", "cross_attention_hidden_size", "diversity_penalty", "dropout", "encoder_no_repeat_ngram_size",
	"exponential_decay_length_penalty", "forced_bos_token_id", "forced_eos_token_id", "layer_norm_eps", "num_beam_groups", "output_scores",
	"projection_dim", "remove_invalid_values", "return_dict_in_generate", "suppress_tokens", "tf_legacy_loss", "tie_word_embeddings", "typical_p",
}

// pairConfig is what CLIPConfig and SiglipConfig have in common.
type pairConfig struct {
	NumLabels int64 `json:"num_labels"`

	text  textConfig
	image imageConfig
	pairs bool // the head takes texts, too
}

// positions are those that a text may have.
func (p *pairConfig) positions() (most int64, key string) {
	if !p.pairs {
		return math.MaxInt64, ""
	}
	return p.text.MaxPositions, "max_position_embeddings"
}

// ofPairs are the keys of a configuration with two towers that are read apart,
// or say nothing about memory.
var ofPairs = []string{"text_config", "vision_config", "text_config_dict", "vision_config_dict", "logit_scale_init_value"}

// readPair reads a configuration and the two within it, text_config and
// vision_config, over their defaults. The pair is a part of the whole.
func readPair[C any](c *hfconfig.Config, whole *C, pair *pairConfig) (*C, error) {
	if err := c.Decode(whole, ofPairs...); err != nil {
		return nil, err
	}
	if pair.NumLabels < 2 {
		return nil, fmt.Errorf("config: num_labels %d of a %s is not modelled", pair.NumLabels, c.ModelType)
	}
	text, image := &pair.text, &pair.image
	for key, into := range map[string]any{"text_config": text, "vision_config": image} {
		within := c.Within(key)
		within.ModelType = cmp.Or(within.ModelType, c.ModelType)
		if err := within.Decode(into, ofGeneration...); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	if err := checkPatches(image.PatchSize, image.ImageSize); err != nil {
		return nil, err
	}
	return whole, checkEncoder(2, 0, text.AttentionDropout, image.AttentionDropout)
}

type towerLayer struct {
	key, value, query, output *torch.Linear
	norm1, norm2              *torch.LayerNorm
	fc1, fc2                  *torch.Linear
}

// tower is CLIPEncoder and SiglipEncoder.
type tower struct {
	cfg    *towerConfig
	run    Run
	act    activation
	siglip bool
	causal bool
	layers []towerLayer
}

// newTower makes the layers, parameters in the order of their constructors: a
// layer of SigLIP makes its norms first.
func newTower(t *torch.Torch, c *towerConfig, r Run, siglip bool) (*tower, error) {
	act, err := activationOf(c.HiddenAct)
	if err != nil {
		return nil, err
	}
	m := &tower{cfg: c, run: r, act: act, siglip: siglip, layers: make([]towerLayer, c.Layers)}
	h := c.HiddenSize
	for i := range m.layers {
		l := &m.layers[i]
		norm1 := func() { l.norm1 = t.NewLayerNorm(h, r.DType) }
		norm2 := func() { l.norm2 = t.NewLayerNorm(h, r.DType) }
		attention := func() {
			l.key = t.NewLinear(h, h, true, r.DType).Named("self_attn.k_proj")
			l.value = t.NewLinear(h, h, true, r.DType).Named("self_attn.v_proj")
			l.query = t.NewLinear(h, h, true, r.DType).Named("self_attn.q_proj")
			l.output = t.NewLinear(h, h, true, r.DType).Named("self_attn.out_proj")
		}
		feedForward := func() {
			l.fc1 = t.NewLinear(h, c.IntermediateSize, true, r.DType).Named("mlp.fc1")
			l.fc2 = t.NewLinear(c.IntermediateSize, h, true, r.DType).Named("mlp.fc2")
		}
		order := []func(){attention, norm1, feedForward, norm2}
		if siglip {
			order = []func(){norm1, attention, norm2, feedForward}
		}
		for _, make := range order {
			make()
		}
	}
	return m, nil
}

// encode is CLIPEncoder.forward.
func (m *tower) encode(t *torch.Torch, embedded, mask *torch.Var) torch.Value {
	f := t.Enter()
	hidden := f.Let(embedded)
	for i := range m.layers {
		layer := func(in []*torch.Var) torch.Value { return m.layer(t, i, in[0], in[1]) }
		if m.run.Checkpointing && m.run.Train {
			hidden.Set(t.CheckpointInputs(layer, hidden, mask))
		} else {
			hidden.Set(layer([]*torch.Var{hidden, mask}))
		}
	}
	return f.Return(hidden)
}

func (m *tower) layer(t *torch.Torch, i int, input, mask *torch.Var) torch.Value {
	f, l := t.Enter(input).In("encoder.layers", i), &m.layers[i]
	hidden := f.Let(input)
	residual := f.Let(hidden)
	hidden.Set(t.LayerNorm(hidden, l.norm1))
	output, weights := m.attention(t, l, hidden, mask)
	f.Let(weights) // hidden_states, _ = ...
	hidden.Set(output)
	hidden.Set(t.Add(residual, hidden))

	residual.Set(hidden)
	hidden.Set(t.LayerNorm(hidden, l.norm2))
	hidden.Set(m.feedForward(t, l.fc1, l.fc2, hidden))
	hidden.Set(t.Add(residual, hidden))
	return f.Return(hidden)
}

func (m *tower) attention(t *torch.Torch, l *towerLayer, hidden, mask *torch.Var) (output, weights torch.Value) {
	f := t.Enter(hidden).In("self_attn")
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	split := func(x torch.X) torch.Value { return t.Transpose(t.View(x, b, s, m.cfg.Heads, -1), 1, 2) }
	states := make([]*torch.Var, 3)
	for i, p := range []*torch.Linear{l.query, l.key, l.value} {
		if projected := t.Linear(hidden, p); m.siglip {
			states[i] = f.Let(split(projected))
		} else {
			states[i] = f.Let(projected)
		}
	}
	if !m.siglip { // CLIP splits after all three
		for _, x := range states {
			x.Set(split(x))
		}
	}
	q, k, v := states[0], states[1], states[2]
	p := m.run.dropout(m.cfg.AttentionDropout)
	var bias torch.X
	if mask.Tensor() != nil {
		bias = mask
	}
	var attended torch.Value
	if m.run.Eager {
		attended, weights = eagerAttention32(t, q, k, v, bias, p)
	} else {
		attended = t.Contiguous(t.Transpose(t.Attention(q, k, v, bias, p, m.causal && bias == nil && s > 1, false), 1, 2))
	}
	out := f.Let(attended)
	out.Set(t.Contiguous(t.Reshape(out, b, s, -1)))
	out.Set(t.Linear(out, l.output))
	return f.Return(out), weights
}

// eagerAttention32 is eager_attention_forward with its softmax in float32.
func eagerAttention32(t *torch.Torch, q, k, v *torch.Var, mask torch.X, dropout float64) (output, weights torch.Value) {
	f := t.Enter()
	w := f.Let(t.Scale(t.MatMul(q, t.Transpose(k, 2, 3))))
	if mask != nil {
		w.Set(t.Add(w, mask))
	}
	w.Set(t.To(t.Softmax(w, torch.Float32), q.Tensor().DType))
	w.Set(t.Dropout(w, dropout, true))
	out := f.Let(t.MatMul(w, v))
	out.Set(t.Contiguous(t.Transpose(out, 1, 2)))
	output, weights = f.Keep(out), f.Keep(w)
	f.End()
	return output, weights
}

// feedForward is CLIPMLP and SiglipMLP.
func (m *tower) feedForward(t *torch.Torch, fc1, fc2 *torch.Linear, x *torch.Var) torch.Value {
	f := t.Enter(x).In("mlp")
	hidden := f.Let(t.Linear(x, fc1))
	hidden.Set(m.act(t, hidden))
	hidden.Set(t.Linear(hidden, fc2))
	return f.Return(hidden)
}

// textTower is CLIPTextModel and SiglipTextModel up to what they pool.
type textTower struct {
	*tower
	cfg             *textConfig
	embed, position *torch.Embedding
	positions       *torch.Tensor // position_ids
	norm            *torch.LayerNorm
}

func newTextTower(t *torch.Torch, c *textConfig, r Run, siglip bool) (*textTower, error) {
	m := &textTower{
		cfg: c, embed: t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("text_model.embeddings.token_embedding"),
		position: t.NewEmbedding(c.MaxPositions, c.HiddenSize, r.DType), positions: t.Buffer(torch.Int64, 1, c.MaxPositions),
	}
	var err error
	if m.tower, err = newTower(t, &c.towerConfig, r, siglip); err != nil {
		return nil, err
	}
	m.causal = !siglip
	m.norm = t.NewLayerNorm(c.HiddenSize, r.DType)
	return m, nil
}

// initialize is what _init_weights computes position_ids from, once more.
func initialize(t *torch.Torch, positions *torch.Tensor) { t.Drop(t.Arange(positions.Numel())) }

// forward is the text model's forward function up to its last norm.
func (m *textTower) forward(t *torch.Torch, f *torch.Frame, batch *Batch) (ids, last *torch.Var) {
	ids = f.Let(t.View(torch.Borrow(batch.IDs), -1, batch.IDs.Dim(1)))
	mask := f.Let(torch.Value{})
	hidden := f.Let(m.embedded(t, ids))
	if m.causal {
		causal := causalMask{eager: m.run.Eager, padded: batch.Padded, cached: true} // without position_ids
		mask.Set(causal.make(t, hidden, nil, batch.Mask))
	} else {
		mask.Set(bidirectionalMask(t, padding{mask: batch.Mask, ones: !batch.Padded}, hidden, m.run.Eager))
	}
	last = f.Let(m.encode(t, hidden, mask))
	f.Let(last) // encoder_outputs
	last.Set(t.LayerNorm(last, m.norm))
	return ids, last
}

// embedded is CLIPTextEmbeddings.
func (m *textTower) embedded(t *torch.Torch, ids *torch.Var) torch.Value {
	f := t.Enter().In("embeddings")
	positions := f.Let(t.Slice(torch.Borrow(m.positions), 1, 0, ids.Tensor().Dim(1)))
	embeds := f.Let(t.Embedding(ids, m.embed))
	placed := f.Let(t.Embedding(positions, m.position))
	return f.Return(t.Add(embeds, placed))
}
