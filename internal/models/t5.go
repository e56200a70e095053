package models

import (
	"errors"
	"strings"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

// t5Tokens start and fill the ids of the decoder, which are shifted labels.
var t5Tokens = []string{"pad_token_id", "decoder_start_token_id"}

var t5Family = Family{
	Type: "t5", read: reads(readT5),
	Heads: []Head{
		decodes(needs(head("T5ForConditionalGeneration", TargetIDs, newT5), t5Tokens...)),
		readsEnds(needs(head("T5ForSequenceClassification", Classes, newT5Classifier), t5Tokens...)),
		head("T5ForTokenClassification", TokenTags, newT5Tokens),
		needs(head("T5ForQuestionAnswering", Spans, newT5Spans), t5Tokens...),
		decodes(needs(head("T5Model", NoLabels, newT5Alone), t5Tokens...)),
		head("T5EncoderModel", NoLabels, newT5Encoder),
	},
}

// t5Config is transformers' T5Config.
type t5Config struct {
	VocabSize         int64   `json:"vocab_size"`
	ModelSize         int64   `json:"d_model"`
	HeadSize          int64   `json:"d_kv"`
	FeedForwardSize   int64   `json:"d_ff"`
	Layers            int64   `json:"num_layers"`
	DecoderLayers     int64   `json:"num_decoder_layers"` // 0: num_layers
	Heads             int64   `json:"num_heads"`
	Buckets           int64   `json:"relative_attention_num_buckets"`
	Dropout           float64 `json:"dropout_rate"`
	FeedForward       string  `json:"feed_forward_proj"`
	UseCache          bool    `json:"use_cache"`
	ClassifierDropout float64 `json:"classifier_dropout"`
	NumLabels         int64   `json:"num_labels"`
	TieWordEmbeddings bool    `json:"tie_word_embeddings"`   // false: tied all the same, but the outputs are not scaled
	ScaleOutputs      *bool   `json:"scale_decoder_outputs"` // as transformers 5 saves it, which then decides
}

// Gated reports whether the feed-forward layers have a gate.
func (c *t5Config) Gated() bool { return strings.HasPrefix(c.FeedForward, "gated-") }

// Activation is the function of the feed-forward layers. "gated-gelu" means
// that by tanh, as the first such models had it.
func (c *t5Config) Activation() string {
	if c.FeedForward == "gated-gelu" {
		return "gelu_new"
	}
	return strings.TrimPrefix(c.FeedForward, "gated-")
}

// t5Names are the names that transformers takes for T5's own
// (T5Config.attribute_map).
var t5Names = map[string]string{
	"hidden_size": "d_model", "num_attention_heads": "num_heads", "num_hidden_layers": "num_layers", "head_dim": "d_kv",
}

// readT5 reads a T5 configuration.
func readT5(c *hfconfig.Config) (*t5Config, error) {
	m := &t5Config{
		VocabSize: 32128, ModelSize: 512, HeadSize: 64, FeedForwardSize: 2048, Layers: 6, Heads: 8,
		Buckets: 32, Dropout: 0.1, FeedForward: "relu", UseCache: true, TieWordEmbeddings: true, NumLabels: 2,
	}
	err := c.Renamed(t5Names).Decode(m, "decoder_start_token_id", "gradient_checkpointing",
		"is_encoder_decoder", "layer_norm_epsilon", "n_positions", "output_past", "relative_attention_max_distance")
	if err != nil {
		return nil, err
	}
	if m.DecoderLayers == 0 {
		m.DecoderLayers = m.Layers
	}
	return m, errors.Join(
		invalid.Positive("vocab_size", m.VocabSize), invalid.Positive("d_model", m.ModelSize), invalid.Positive("d_kv", m.HeadSize),
		invalid.Positive("d_ff", m.FeedForwardSize), invalid.Positive("num_layers", m.Layers), invalid.Positive("num_decoder_layers", m.DecoderLayers),
		invalid.Positive("num_heads", m.Heads), invalid.Positive("relative_attention_num_buckets", m.Buckets))
}

type t5Attention struct {
	q, k, v, o   *torch.Linear
	relativeBias *torch.Embedding // of a stack's first layer
	norm         *torch.RMSNorm   // of the layer around it
	causal       bool
}

type t5Block struct {
	self, cross     *t5Attention  // cross of decoders
	wi0, wi1, wo    *torch.Linear // wi1 if gated
	feedForwardNorm *torch.RMSNorm
}

type t5Stack struct {
	name   string
	blocks []t5Block
	norm   *torch.RMSNorm
}

// t5 is T5ForConditionalGeneration
// (transformers/models/t5/modeling_t5.py).
type t5 struct {
	cfg              *t5Config
	train            bool
	eager            bool
	checkpoints      bool
	act              activation
	shared           *torch.Embedding
	encoder, decoder t5Stack
	head             *torch.Linear // tied to shared
}

// newT5Model makes the stacks of a model, parameters in the order of its
// constructors. The stacks make tables of their own, which are dropped for the
// shared one once the head, if there is one, is made.
func newT5Model(t *torch.Torch, c *t5Config, r Run, decoder bool, head func(m *t5)) (*t5, error) {
	act, err := activationOf(c.Activation())
	if err != nil {
		return nil, err
	}
	m := &t5{cfg: c, act: act, train: r.Train, eager: r.Eager}
	m.checkpoints = r.Checkpointing && m.train
	m.shared = t.NewEmbedding(c.VocabSize, c.ModelSize, r.DType).AsInput("shared")
	var tables []*torch.Tensor
	table := func() { tables = append(tables, t.Buffer(r.DType, c.VocabSize, c.ModelSize)) }
	table()
	m.encoder = newT5Stack(t, c, c.Layers, false, r.DType)
	if decoder {
		table()
		m.decoder = newT5Stack(t, c, c.DecoderLayers, true, r.DType)
	}
	if head != nil {
		head(m)
	}
	for _, table := range tables {
		t.Release(table)
	}
	return m, nil
}

// newT5 makes the model whose head is the shared table, for which its own is
// dropped, too.
func newT5(t *torch.Torch, c *t5Config, r Run) (*Model, error) {
	m, err := newT5Model(t, c, r, true, func(m *t5) {
		t.Release(t.Buffer(r.DType, c.VocabSize, c.ModelSize))
		m.head = &torch.Linear{Weight: m.shared.Weight}
	})
	if err != nil {
		return nil, err
	}
	return &Model{Forward: m.forward}, nil
}

func newT5Stack(t *torch.Torch, c *t5Config, layers int64, decoder bool, dtype torch.DType) t5Stack {
	s := t5Stack{name: "encoder"}
	if decoder {
		s.name = "decoder"
	}
	linear := func(name string, in, out int64) *torch.Linear { return t.NewLinear(in, out, false, dtype).Named(name) }
	inner := c.Heads * c.HeadSize
	attention := func(name string, bias bool) *t5Attention {
		a := &t5Attention{
			q: linear(name+".q", c.ModelSize, inner), k: linear(name+".k", c.ModelSize, inner), v: linear(name+".v", c.ModelSize, inner),
			o: linear(name+".o", inner, c.ModelSize),
		}
		if bias {
			a.relativeBias = t.NewEmbedding(c.Buckets, c.Heads, dtype)
			a.relativeBias.Weight.OddDecay() // it is called a bias
		}
		a.norm = t.NewRMSNorm(c.ModelSize, dtype)
		return a
	}
	for i := range layers {
		b := t5Block{self: attention("SelfAttention", i == 0)}
		b.self.causal = decoder
		if decoder {
			b.cross = attention("EncDecAttention", false)
		}
		if c.Gated() {
			b.wi0 = linear("DenseReluDense.wi_0", c.ModelSize, c.FeedForwardSize)
			b.wi1 = linear("DenseReluDense.wi_1", c.ModelSize, c.FeedForwardSize)
		} else {
			b.wi0 = linear("DenseReluDense.wi", c.ModelSize, c.FeedForwardSize)
		}
		b.wo = linear("DenseReluDense.wo", c.FeedForwardSize, c.ModelSize).InFloat32()
		b.feedForwardNorm = t.NewRMSNorm(c.ModelSize, dtype)
		s.blocks = append(s.blocks, b)
	}
	s.norm = t.NewRMSNorm(c.ModelSize, dtype)
	return s
}

func (m *t5) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	decoderIDs := f.Let(torch.Value{})
	padded := padding{mask: batch.Mask, ones: !batch.Padded}
	encoded := f.Let(m.stack(t, &m.encoder, torch.Borrow(batch.IDs), nil, padded, encoderDecoderCache{}))
	if batch.DecoderIDs != nil {
		decoderIDs.Set(torch.Borrow(batch.DecoderIDs))
	} else {
		decoderIDs.Set(shiftTokensRight(t, batch.Labels))
	}
	cache := m.newCache()
	decoded := f.Let(m.stack(t, &m.decoder, decoderIDs, encoded, padded, cache))
	sequence := f.Let(decoded)
	scaled := m.cfg.TieWordEmbeddings
	if m.cfg.ScaleOutputs != nil {
		scaled = *m.cfg.ScaleOutputs
	}
	if scaled {
		sequence.Set(t.Scale(sequence))
	}
	logits := f.Let(t.In("lm_head", func() torch.Value { return t.Linear(sequence, m.head) }))
	var loss torch.Value
	if batch.Labels != nil {
		l := f.Let(t.In("loss_fct", func() torch.Value {
			return t.CrossEntropy(t.View(logits, -1, m.cfg.VocabSize), t.View(torch.Borrow(batch.Labels), -1))
		}))
		loss = f.Keep(l)
	}
	out := Output{Loss: loss, Logits: f.Keep(logits), Cache: cache.tensors(), Rest: []torch.Value{f.Keep(encoded)}}
	f.End()
	return out
}

// newCache is EncoderDecoderCache, which checkpointing does without. It asks the
// decoder's copy of the configuration: what a loop sets in the model's changes
// nothing.
func (m *t5) newCache() encoderDecoderCache {
	if !m.cfg.UseCache || m.checkpoints {
		return encoderDecoderCache{}
	}
	return encoderDecoderCache{self: &dynamicCache{}, cross: &dynamicCache{}}
}

// stack is T5Stack; the encoder has nothing encoded and no cache. The padding
// is that of the encoder's input in both.
func (m *t5) stack(t *torch.Torch, s *t5Stack, ids torch.X, encoded *torch.Var, p padding, cache encoderDecoderCache) torch.Value {
	f := t.Enter().In(s.name)
	mask := f.Let(torch.Value{})
	inputs := f.Let(t.In("embed_tokens", func() torch.Value { return t.Embedding(ids, m.shared) }))
	crossMask := f.Let(torch.Value{})
	if encoded == nil {
		mask.Set(bidirectionalMask(t, p, inputs, m.eager))
	} else {
		mask.Set(causalMask{eager: m.eager, cached: true}.make(t, inputs, nil, nil))
		crossMask.Set(bidirectionalMask(t, p, encoded, m.eager))
	}
	bias := t5Pair{self: f.Let(torch.Value{}), cross: f.Let(torch.Value{})}
	hidden := f.Let(t.Dropout(inputs, m.cfg.Dropout, m.train))
	for i := range s.blocks {
		b, g := &s.blocks[i], t.Enter().In("block", i)
		if m.checkpoints {
			hidden.Set(g.Return(m.checkpointed(t, b, hidden, encoded, t5Pair{mask, crossMask}, bias)))
		} else {
			hidden.Set(g.Return(m.block(t, b, hidden, encoded, t5Pair{mask, crossMask}, bias, cache)))
		}
	}
	hidden.Set(t.In("final_layer_norm", func() torch.Value { return t5Norm(t, hidden, s.norm) }))
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.train))
	return f.Return(hidden)
}

// shiftTokensRight is _shift_right: the labels behind a start token.
func shiftTokensRight(t *torch.Torch, labels *torch.Tensor) torch.Value {
	f := t.Enter()
	b, s := labels.Shape[0], labels.Shape[1]
	shifted := f.Let(t.Full(torch.Int64, b, s))
	t.Drop(t.Clone(t.Slice(torch.Borrow(labels), -1, 0, s-1))) // shifted[:, 1:] = labels[:, :-1].clone()
	t.Drop(t.Compare(shifted))                                 // shifted.masked_fill_(shifted == -100, pad)
	return f.Return(shifted)
}
