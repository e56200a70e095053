package models

import (
	"errors"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var bartFamily = Family{Type: "bart", Versions: []Versions{newest}, Except: map[Versions][]string{newest: {"BartForSequenceClassification"}}, read: reads(readBART), Heads: []Head{
	decodes(head("BartForConditionalGeneration", TargetIDs, newBART)),
	readsEnds(head("BartForSequenceClassification", Classes, newBARTClassifier)),
	head("BartForQuestionAnswering", Spans, newBARTSpans),
	head("BartModel", NoLabels, newBARTAlone),
}}

// bartConfig is transformers' BartConfig.
type bartConfig struct {
	seq2seqConfig
	VocabSize    int64 `json:"vocab_size"`
	MaxPositions int64 `json:"max_position_embeddings"`
	Decoder      bool  `json:"is_decoder"`
	Labels       int64 `json:"num_labels"`
	// Of BartForSequenceClassification.
	ClassifierDropout float64 `json:"classifier_dropout"`
}

// seq2seqNames are the names that transformers takes for BART's and Whisper's own
// (attribute_map).
var seq2seqNames = map[string]string{
	"hidden_size": "d_model", "num_attention_heads": "encoder_attention_heads", "num_hidden_layers": "encoder_layers",
}

// readBART reads a configuration.
func readBART(c *hfconfig.Config) (*bartConfig, error) {
	b := &bartConfig{
		VocabSize: 50265, MaxPositions: 1024, Labels: 3,
		seq2seqConfig: seq2seqConfig{
			ModelSize: 1024, EncoderLayers: 12, DecoderLayers: 12, EncoderHeads: 16, DecoderHeads: 16, EncoderFFN: 4096, DecoderFFN: 4096,
			Dropout: 0.1, Activation: "gelu", UseCache: true, TieWordEmbeddings: true,
		},
	}
	err := c.Renamed(seq2seqNames).Decode(b, "init_std", "classif_dropout", "scale_embedding", "is_encoder_decoder",
		"decoder_start_token_id", "forced_eos_token_id", "forced_bos_token_id", "add_bias_logits", "add_final_layer_norm", "normalize_before",
		"normalize_embedding", "gradient_checkpointing", "static_position_embeddings", "extra_pos_embeddings")
	if err != nil {
		return nil, err
	}
	if b.Decoder {
		return nil, errors.New("config: a bart as a decoder is not modelled")
	}
	return b, b.check()
}

// check reports layers that are not modelled.
func (c *seq2seqConfig) check() error {
	if c.EncoderLayerDrop != 0 || c.DecoderLayerDrop != 0 {
		return errors.New("config: layerdrop, which skips layers at random, is not modelled")
	}
	_, err := activationOf(c.Activation)
	return err
}

// positions are those that there are embeddings for.
func (c *bartConfig) positions() (most int64, key string) {
	return c.MaxPositions, "max_position_embeddings"
}

// bart is BartModel (transformers/models/bart/modeling_bart.py).
type bart struct {
	seq2seq
	cfg              *bartConfig
	name             string // what the head calls the model
	shared           *torch.Embedding
	encoder, decoder bartStack
	logitsBias       *torch.Tensor // final_logits_bias
	head             *torch.Linear
}

// bartStack is BartEncoder or BartDecoder.
type bartStack struct {
	tokens, position *torch.Embedding
	norm             *torch.LayerNorm
	layers           []seq2seqLayer
}

// newBARTModel makes the model, parameters in the order of its constructors. The
// stacks make tables of their own, for which the shared one is taken.
func newBARTModel(t *torch.Torch, c *bartConfig, r Run) (*bart, error) {
	layers, err := newSeq2seq(&c.seq2seqConfig, r)
	if err != nil {
		return nil, err
	}
	m := &bart{seq2seq: layers, cfg: c, name: "model"}
	m.shared = t.NewEmbedding(c.VocabSize, c.ModelSize, r.DType).AsInput("shared")
	m.encoder = m.newStack(t, false)
	m.decoder = m.newStack(t, true)
	if c.TieWordEmbeddings {
		t.TieTable(m.decoder.tokens, m.shared)
		t.TieTable(m.encoder.tokens, m.shared)
	}
	return m, nil
}

func (m *bart) newStack(t *torch.Torch, decoder bool) bartStack {
	d := m.run.DType
	s := bartStack{
		tokens:   t.NewEmbedding(m.cfg.VocabSize, m.cfg.ModelSize, d),
		position: t.NewEmbedding(m.cfg.MaxPositions+2, m.cfg.ModelSize, d),
		layers:   m.newLayers(t, decoder),
	}
	s.norm = t.NewLayerNorm(m.cfg.ModelSize, d)
	return s
}

func newBART(t *torch.Torch, c *bartConfig, r Run) (*Model, error) {
	m, err := newBARTModel(t, c, r)
	if err != nil {
		return nil, err
	}
	m.logitsBias = t.Buffer(r.bufferDType(), 1, c.VocabSize)
	m.head = t.NewLinear(c.ModelSize, c.VocabSize, false, r.DType).AsOutput("lm_head")
	if c.TieWordEmbeddings {
		t.Tie(m.head, m.shared)
	}
	return &Model{Forward: m.forward}, nil
}

// bartClassifier is BartForSequenceClassification.
type bartClassifier struct {
	*bart
	*endClassifier
}

func newBARTClassifier(t *torch.Torch, c *bartConfig, r Run) (*Model, error) {
	m, err := newBARTModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := bartClassifier{m, newEndClassifier(t, c.ModelSize, c.Labels, c.ClassifierDropout, r)}
	return &Model{Forward: h.forward}, nil
}

func (m bartClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	decoded, encoded, cache := m.both(t, batch, torch.Value{}, m.newCache(batch.Labels != nil))
	out := m.classify(t, f, f.Let(decoded), batch)
	out.Rest = append(cache.tensors(), encoded)
	return out
}

func newBARTSpans(t *torch.Torch, c *bartConfig, r Run) (*Model, error) {
	m, err := newBARTModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &bartSpans{bart: m}
	h.spans.classifier = t.NewLinear(c.ModelSize, 2, true, r.DType).Named("qa_outputs")
	return &Model{Forward: h.forward}, nil
}

func newBARTAlone(t *torch.Torch, c *bartConfig, r Run) (*Model, error) {
	m, err := newBARTModel(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = ""
	return bare(func(t *torch.Torch, batch *Batch) trunkOutput {
		decoded, encoded, cache := m.both(t, batch, torch.Value{}, m.newCache(false))
		return trunkOutput{hidden: decoded, rest: append(cache.tensors(), encoded)}
	}), nil
}

// forward is BartForConditionalGeneration.forward.
func (m *bart) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	ids := f.Let(torch.Value{})
	if batch.Labels != nil {
		ids.Set(shiftTokensRight(t, batch.Labels))
	} else {
		ids.Set(torch.Borrow(batch.DecoderIDs))
	}
	hidden, encoded, cache := m.both(t, batch, t.Hold(ids), m.newCache(batch.Labels != nil))
	decoded := f.Let(hidden)
	logits := f.Let(t.In("lm_head", func() torch.Value { return t.Linear(decoded, m.head) }))
	logits.Set(t.Add(logits, torch.Borrow(m.logitsBias)))
	var loss torch.Value
	if batch.Labels != nil {
		loss = f.Keep(f.Let(t.In("loss_fct", func() torch.Value {
			return t.CrossEntropy(t.View(logits, -1, m.cfg.VocabSize), t.View(torch.Borrow(batch.Labels), -1))
		})))
	}
	out := Output{Loss: loss, Logits: f.Keep(logits), Cache: cache.tensors(), Rest: []torch.Value{encoded}}
	f.End()
	return out
}

// bartSpans is BartForQuestionAnswering.
type bartSpans struct {
	*bart
	spans spanClassifier
}

func (m *bartSpans) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	starts, ends := f.Let(torch.Value{}), f.Let(torch.Value{})
	decoded, encoded, cache := m.both(t, batch, torch.Value{}, m.newCache(batch.Starts != nil))
	sequence := f.Let(decoded)
	out := m.spans.spans(t, f, f.Let(sequence), starts, ends, batch)
	out.Rest = append(append(out.Rest, cache.tensors()...), encoded)
	return out
}

// both is BartModel.forward: encoder and decoder. A model without ids for its
// decoder takes those of its encoder, one place later.
func (m *bart) both(t *torch.Torch, batch *Batch, decoderIDs torch.Value, cache encoderDecoderCache) (hidden, encoded torch.Value, _ encoderDecoderCache) {
	f := enter(t, m.name)
	ids := f.Let(decoderIDs)
	if ids.Tensor() == nil {
		ids.Set(shiftTokensRight(t, batch.IDs))
	}
	padded := padding{mask: batch.Mask, ones: !batch.Padded}
	last := f.Let(m.encode(t, batch, padded))
	decoded := f.Let(m.decode(t, ids, last, padded, cache))
	hidden, encoded = f.Keep(decoded), f.Keep(last)
	f.End()
	return hidden, encoded, cache
}

// embedded is BartScaledWordEmbedding.forward, which multiplies by 1 too. Each
// stack's table is an input embedding to enable_input_require_grads.
func (s *bartStack) embedded(t *torch.Torch, ids torch.X) torch.Value {
	f := t.Enter().In("embed_tokens")
	out := f.Let(t.Scale(t.Embedding(ids, s.tokens)))
	if t.InputsRequireGrad {
		out.Tensor().RequireGrad()
	}
	return f.Return(out)
}

// placed is BartLearnedPositionalEmbedding.forward: the first two rows of the
// table are not for positions.
func (s *bartStack) placed(t *torch.Torch, positions torch.Value) torch.Value {
	f := t.Enter().In("embed_positions")
	ids := f.Let(positions)
	return f.Return(t.Embedding(t.Integers(ids), s.position))
}

// encode is BartEncoder.forward.
func (m *bart) encode(t *torch.Torch, batch *Batch, p padding) torch.Value {
	f, s := t.Enter().In("encoder"), &m.encoder
	mask := f.Let(torch.Value{})
	embeds := f.Let(s.embedded(t, torch.Borrow(batch.IDs)))
	placed := f.Let(s.placed(t, t.Expand(t.Arange(batch.IDs.Dim(1)), batch.IDs.Dim(0), -1)))
	hidden := f.Let(t.Add(embeds, placed))
	hidden.Set(t.LayerNorm(hidden, s.norm))
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.run.Train))
	mask.Set(bidirectionalMask(t, p, embeds, m.run.Eager))
	m.layers(t, s.layers, hidden, mask, &torch.Var{}, &torch.Var{}, encoderDecoderCache{})
	return f.Return(hidden)
}

// decode is BartDecoder.forward. A mask of ones stands for one that was not given.
func (m *bart) decode(t *torch.Torch, ids, encoded *torch.Var, p padding, cache encoderDecoderCache) torch.Value {
	f, s := t.Enter().In("decoder"), &m.decoder
	mask, crossMask := f.Let(torch.Value{}), f.Let(torch.Value{})
	embeds := f.Let(s.embedded(t, ids))
	b, length := embeds.Tensor().Dim(0), embeds.Tensor().Dim(1)
	positions := f.Let(t.Integers(t.Arange(length)))
	mask.Set(t.Full(torch.Float32, b, length))
	mask.Set(causalMask{eager: m.run.Eager, cached: cache.self != nil}.make(t, embeds, positions, mask.Tensor()))
	crossMask.Set(bidirectionalMask(t, p, encoded, m.run.Eager))
	placed := f.Let(s.placed(t, t.Unsqueeze(positions, 0)))
	hidden := f.Let(t.Add(embeds, placed))
	hidden.Set(t.LayerNorm(hidden, s.norm))
	hidden.Set(t.Dropout(hidden, m.cfg.Dropout, m.run.Train))
	m.layers(t, s.layers, hidden, mask, encoded, crossMask, cache)
	return f.Return(hidden)
}
