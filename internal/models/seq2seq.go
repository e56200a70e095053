package models

import "memorymark/internal/torch"

// This file is what BART and Whisper share: the attention and the layers of an
// encoder and a decoder (transformers/models/bart/modeling_bart.py,
// transformers/models/whisper/modeling_whisper.py).

// seq2seqConfig has the keys of their layers.
type seq2seqConfig struct {
	ModelSize         int64   `json:"d_model"`
	EncoderLayers     int64   `json:"encoder_layers"`
	DecoderLayers     int64   `json:"decoder_layers"`
	EncoderHeads      int64   `json:"encoder_attention_heads"`
	DecoderHeads      int64   `json:"decoder_attention_heads"`
	EncoderFFN        int64   `json:"encoder_ffn_dim"`
	DecoderFFN        int64   `json:"decoder_ffn_dim"`
	Dropout           float64 `json:"dropout"`
	AttentionDropout  float64 `json:"attention_dropout"`
	ActivationDropout float64 `json:"activation_dropout"`
	Activation        string  `json:"activation_function"`
	EncoderLayerDrop  float64 `json:"encoder_layerdrop"`
	DecoderLayerDrop  float64 `json:"decoder_layerdrop"`
	UseCache          bool    `json:"use_cache"`
	TieWordEmbeddings bool    `json:"tie_word_embeddings"`
}

// seq2seq is how the layers run.
type seq2seq struct {
	cfg        *seq2seqConfig
	run        Run
	checkpoint bool
	act        activation
	normBefore bool // layers are normed first, as Whisper's are
	// scaled says that queries are scaled before attention, and that queries,
	// keys and values are copied for it: Whisper's.
	scaled bool
}

func newSeq2seq(c *seq2seqConfig, r Run) (seq2seq, error) {
	act, err := activationOf(c.Activation)
	return seq2seq{cfg: c, run: r, checkpoint: r.Checkpointing && r.Train, act: act}, err
}

// seq2seqAttention is BartAttention or WhisperAttention, and the norm beside it.
type seq2seqAttention struct {
	name                      string
	heads                     int64
	key, value, query, output *torch.Linear
	norm                      *torch.LayerNorm
	causal                    bool
}

// seq2seqLayer is a layer; cross is of decoders.
type seq2seqLayer struct {
	self, cross *seq2seqAttention
	fc1, fc2    *torch.Linear
	norm        *torch.LayerNorm
}

func (m *seq2seq) newAttention(t *torch.Torch, name string, heads int64) *seq2seqAttention {
	size, d := m.cfg.ModelSize, m.run.DType
	linear := func(part string, bias bool) *torch.Linear {
		return t.NewLinear(size, size, bias, d).Named(name + "." + part)
	}
	return &seq2seqAttention{
		name: name, heads: heads,
		key: linear("k_proj", !m.scaled), value: linear("v_proj", true), query: linear("q_proj", true), output: linear("out_proj", true),
		norm: t.NewLayerNorm(size, d),
	}
}

func (m *seq2seq) newLayers(t *torch.Torch, decoder bool) []seq2seqLayer {
	n, heads, inner := m.cfg.EncoderLayers, m.cfg.EncoderHeads, m.cfg.EncoderFFN
	if decoder {
		n, heads, inner = m.cfg.DecoderLayers, m.cfg.DecoderHeads, m.cfg.DecoderFFN
	}
	layers := make([]seq2seqLayer, n)
	for i := range layers {
		l := &layers[i]
		l.self = m.newAttention(t, "self_attn", heads)
		if decoder {
			l.self.causal = true
			l.cross = m.newAttention(t, "encoder_attn", heads)
		}
		l.fc1 = t.NewLinear(m.cfg.ModelSize, inner, true, m.run.DType).Named("fc1")
		l.fc2 = t.NewLinear(inner, m.cfg.ModelSize, true, m.run.DType).Named("fc2")
		l.norm = t.NewLayerNorm(m.cfg.ModelSize, m.run.DType)
	}
	return layers
}

// newCache is EncoderDecoderCache, which checkpointing and a loss do without.
func (m *seq2seq) newCache(labels bool) encoderDecoderCache {
	if labels || !m.cfg.UseCache || m.run.Checkpointing || m.run.NoCache {
		return encoderDecoderCache{}
	}
	return encoderDecoderCache{self: &dynamicCache{}, cross: &dynamicCache{}}
}

// layers runs the layers of a stack one after the other. An encoder's have
// nothing encoded.
func (m *seq2seq) layers(t *torch.Torch, layers []seq2seqLayer, hidden, mask, encoded, crossMask *torch.Var, cache encoderDecoderCache) {
	for i := range layers {
		g, l := t.Enter().In("layers", i), &layers[i]
		if !m.checkpoint {
			hidden.Set(g.Return(m.layer(t, l, hidden, mask, encoded, crossMask, cache)))
			continue
		}
		// The mask of what is encoded is bound by a keyword, which dies first.
		block := func(in []*torch.Var) torch.Value {
			return m.layer(t, l, in[1], in[2], in[3], in[0], encoderDecoderCache{})
		}
		hidden.Set(g.Return(t.CheckpointInputs(block, crossMask, hidden, mask, encoded)))
	}
}

// layer is the forward function of BartEncoderLayer, BartDecoderLayer and
// Whisper's.
func (m *seq2seq) layer(t *torch.Torch, l *seq2seqLayer, x, mask, encoded, crossMask *torch.Var, cache encoderDecoderCache) torch.Value {
	f := t.Enter()
	hidden := f.Let(x)
	residual := f.Let(hidden)
	weights := f.Let(torch.Value{}) // "_"
	attend := func(a *seq2seqAttention, encoded, mask *torch.Var, cache *dynamicCache) {
		residual.Set(hidden)
		if m.normBefore {
			hidden.Set(t.LayerNorm(hidden, a.norm))
		}
		out, w := m.attention(t, a, hidden, encoded, mask, cache)
		hidden.Set(out)
		weights.Set(w)
		hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.run.Train))
		hidden.Set(t.Add(residual, hidden))
		if !m.normBefore {
			hidden.Set(t.LayerNorm(hidden, a.norm))
		}
	}
	attend(l.self, &torch.Var{}, mask, cache.self)
	if l.cross != nil {
		attend(l.cross, encoded, crossMask, cache.cross)
	}
	residual.Set(hidden)
	if m.normBefore {
		hidden.Set(t.LayerNorm(hidden, l.norm))
	}
	hidden.Set(m.act(t, t.Linear(hidden, l.fc1)))
	hidden.Set(t.Dropout(hidden, m.cfg.ActivationDropout, m.run.Train))
	hidden.Set(t.Linear(hidden, l.fc2))
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.run.Train))
	hidden.Set(t.Add(residual, hidden))
	if !m.normBefore {
		hidden.Set(t.LayerNorm(hidden, l.norm))
	}
	return f.Return(hidden)
}

// attention is the forward function of BartAttention and WhisperAttention.
func (m *seq2seq) attention(t *torch.Torch, a *seq2seqAttention, hidden, encoded, mask *torch.Var, cache *dynamicCache) (out, weights torch.Value) {
	f := t.Enter().In(a.name)
	current := hidden
	if encoded.Tensor() != nil {
		current = encoded
	}
	split := func(x torch.Value) torch.Value {
		x = t.Transpose(t.View(x, hidden.Tensor().Dim(0), -1, a.heads, m.cfg.ModelSize/a.heads), 1, 2)
		if m.scaled {
			x = t.Contiguous(x)
		}
		return x
	}
	projected := t.Linear(hidden, a.query)
	if m.scaled {
		projected = t.Scale(projected)
	}
	q := f.Let(split(projected))
	var k, v *torch.Var
	if m.scaled {
		k = f.Let(split(t.Linear(current, a.key)))
		v = f.Let(split(t.Linear(current, a.value)))
	} else {
		k, v = f.Let(t.Linear(current, a.key)), f.Let(t.Linear(current, a.value))
		k.Set(split(t.Hold(k)))
		v.Set(split(t.Hold(v)))
	}
	cache.update(t, k, v)
	attended, w := m.attend(t, a, q, k, v, mask)
	joined := f.Let(attended)
	kept := f.Let(w)
	joined.Set(t.Contiguous(t.Reshape(joined, hidden.Tensor().Dim(0), hidden.Tensor().Dim(1), -1)))
	joined.Set(t.Linear(joined, a.output))
	out, weights = f.Keep(joined), f.Keep(kept)
	f.End()
	return out, weights
}

// attend is the attention function of the chosen kind.
func (m *seq2seq) attend(t *torch.Torch, a *seq2seqAttention, q, k, v, mask *torch.Var) (out, weights torch.Value) {
	dropout := m.run.dropout(m.cfg.AttentionDropout)
	if !m.run.Eager {
		return groupedAttention(t, groupedOptions{everywhere: !a.causal, dropout: dropout}, q, k, v, mask)
	}
	var bias torch.X
	if mask.Tensor() != nil {
		bias = mask
	}
	return eagerAttention(t, q, k, v, bias, dropout)
}

// shiftTokensRight is shift_tokens_right, and T5's _shift_right: the labels behind
// a start token.
func shiftTokensRight(t *torch.Torch, labels *torch.Tensor) torch.Value {
	f := t.Enter()
	b, s := labels.Shape[0], labels.Shape[1]
	shifted := f.Let(t.Full(torch.Int64, b, s))
	t.Drop(t.Clone(t.Slice(torch.Borrow(labels), -1, 0, s-1))) // shifted[:, 1:] = labels[:, :-1].clone()
	t.Drop(t.Compare(shifted))                                 // shifted.masked_fill_(shifted == -100, pad)
	return f.Return(shifted)
}
