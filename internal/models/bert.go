package models

import (
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var bertFamily = Family{
	Type: "bert", read: reads(readBert),
	Heads: []Head{
		head("BertForSequenceClassification", Classes, newBert),
		head("BertForTokenClassification", TokenTags, newBertTokens),
		head("BertForQuestionAnswering", Spans, newBertSpans),
		head("BertForMaskedLM", SameIDs, newBertMaskedLM),
		head("BertModel", NoLabels, newBertAlone),
	},
}

// bertConfig is transformers' BertConfig.
type bertConfig struct {
	VocabSize         int64    `json:"vocab_size"`
	HiddenSize        int64    `json:"hidden_size"`
	Layers            int64    `json:"num_hidden_layers"`
	Heads             int64    `json:"num_attention_heads"`
	IntermediateSize  int64    `json:"intermediate_size"`
	HiddenAct         string   `json:"hidden_act"`
	HiddenDropout     float64  `json:"hidden_dropout_prob"`
	AttentionDropout  float64  `json:"attention_probs_dropout_prob"`
	MaxPositions      int64    `json:"max_position_embeddings"`
	TypeVocabSize     int64    `json:"type_vocab_size"`
	ClassifierDropout *float64 `json:"classifier_dropout"` // nil: hidden_dropout_prob
	NumLabels         int64    `json:"num_labels"`
	TieWordEmbeddings bool     `json:"tie_word_embeddings"`

	Decoder        bool  `json:"is_decoder"`
	CrossAttention bool  `json:"add_cross_attention"`
	ChunkSize      int64 `json:"chunk_size_feed_forward"`
}

func (c *bertConfig) positions() (most int64, key string) {
	return c.MaxPositions, "max_position_embeddings"
}

func (c *bertConfig) depth() (layers int64, key string) { return c.Layers, "num_hidden_layers" }

func (c *bertConfig) kindOf(int64) any { return nil }

// classifierDropout is what classifiers drop.
func (c *bertConfig) classifierDropout() float64 {
	if c.ClassifierDropout != nil {
		return *c.ClassifierDropout
	}
	return c.HiddenDropout
}

// readBert reads a BERT configuration.
func readBert(c *hfconfig.Config) (*bertConfig, error) {
	b := &bertConfig{
		VocabSize: 30522, HiddenSize: 768, Layers: 12, Heads: 12, IntermediateSize: 3072, HiddenAct: "gelu",
		HiddenDropout: 0.1, AttentionDropout: 0.1, MaxPositions: 512, TypeVocabSize: 2, NumLabels: 2, TieWordEmbeddings: true,
	}
	err := c.Decode(b, "layer_norm_eps", "use_cache", "position_embedding_type", "gradient_checkpointing", "output_past", "directionality",
		"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type")
	if err != nil {
		return nil, err
	}
	if b.Decoder || b.CrossAttention {
		return nil, fmt.Errorf("config: a %s as a decoder is not modelled", c.ModelType)
	}
	return b, checkEncoder(b.NumLabels, b.ChunkSize, b.HiddenDropout, b.AttentionDropout)
}

// This file is BertModel and its heads but BertForMaskedLM
// (transformers/models/bert/modeling_bert.py).

type bertEmbeddings struct {
	word, position, tokenType *torch.Embedding
	norm                      *torch.LayerNorm
	positionIDs, tokenTypeIDs *torch.Tensor
	dropout                   float64
}

func newBertEmbeddings(t *torch.Torch, c *bertConfig, dtype torch.DType) *bertEmbeddings {
	return &bertEmbeddings{
		word:         t.NewPaddedEmbedding(c.VocabSize, c.HiddenSize, dtype).AsInput("word_embeddings"),
		position:     t.NewEmbedding(c.MaxPositions, c.HiddenSize, dtype),
		tokenType:    t.NewEmbedding(c.TypeVocabSize, c.HiddenSize, dtype),
		norm:         t.NewLayerNorm(c.HiddenSize, dtype),
		positionIDs:  t.Buffer(torch.Int64, 1, c.MaxPositions),
		tokenTypeIDs: t.Buffer(torch.Int64, 1, c.MaxPositions),
		dropout:      c.HiddenDropout,
	}
}

// forward is BertEmbeddings.forward. Names of arguments that were left out go before other
// names.
func (e *bertEmbeddings) forward(t *torch.Torch, ids *torch.Tensor, train bool) torch.Value {
	f := t.Enter().In("embeddings")
	types := f.Let(torch.Value{})
	positions := f.Let(t.Slice(torch.Borrow(e.positionIDs), 1, 0, ids.Dim(1)))
	inputs := f.Let(torch.Value{})
	buffered := f.Let(t.Expand(torch.Borrow(e.tokenTypeIDs), positions.Tensor().Dim(0), -1))
	buffered.Set(t.Gather(buffered, positions))
	types.Set(t.Expand(buffered, ids.Dim(0), ids.Dim(1)))
	inputs.Set(t.Embedding(torch.Borrow(ids), e.word))
	typed := f.Let(t.Embedding(types, e.tokenType))
	sum := f.Let(t.Add(inputs, typed))
	positioned := f.Let(t.Embedding(positions, e.position))
	sum.Set(t.Add(sum, positioned))
	sum.Set(t.LayerNorm(sum, e.norm))
	sum.Set(t.Dropout(sum, e.dropout, train))
	return f.Return(sum)
}

// bertModel is BertModel.
type bertModel struct {
	*encoding
	name   string // what the model around it calls it, "" if there is none
	embed  func(t *torch.Torch, ids *torch.Tensor, train bool) torch.Value
	layers []layer
	pooler *torch.Linear // nil without one
}

func newBertModel(t *torch.Torch, c *bertConfig, e *encoding, dtype torch.DType, pooler bool) (*bertModel, *bertEmbeddings) {
	embeddings := newBertEmbeddings(t, c, dtype)
	m := &bertModel{encoding: e, name: "bert", embed: embeddings.forward, layers: newBertLayers(t, c, e, dtype)}
	if pooler {
		m.pooler = t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype).Named("pooler.dense")
	}
	initPositions(t, c.MaxPositions)
	return m, embeddings
}

// initPositions is the one allocation of _init_weights: position ids, which are copied over
// those that are there.
func initPositions(t *torch.Torch, positions int64) { t.Release(t.Buffer(torch.Int64, positions)) }

func (m *bertModel) forward(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	mask := f.Let(torch.Value{})
	embedded := f.Let(m.embed(t, batch.IDs, m.train))
	mask.Set(bidirectionalMask(t, m.padding(batch), embedded, m.eager))
	last := f.Let(m.encode(t, m.layers, embedded, mask))
	first := f.Let(torch.Value{})
	if m.pooler != nil {
		first.Set(t.In("pooler", func() torch.Value { return t.Tanh(t.Linear(t.Select(last, 1), m.pooler)) }))
	}
	out := trunkOutput{hidden: f.Keep(last), pooled: f.Keep(first)}
	f.End()
	return out
}

type bertClassifier struct {
	*bertModel
	dropout    float64
	classifier *torch.Linear
}

// newBert makes the model, parameters in the order of its constructors.
func newBert(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	e, err := newEncoding(c, r)
	if err != nil {
		return nil, err
	}
	m := &bertClassifier{dropout: c.classifierDropout()}
	m.bertModel, _ = newBertModel(t, c, e, r.DType, true)
	m.classifier = t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier")
	return &Model{Forward: m.forward}, nil
}

func (m *bertClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	outputs := m.bertModel.forward(t, batch)
	f.Let(outputs.hidden)
	pooled := f.Let(t.Dropout(f.Let(outputs.pooled), m.dropout, m.train))
	scores := t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) })
	return classified(t, f, scores, batch)
}

func newBertAlone(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	e, err := newEncoding(c, r)
	if err != nil {
		return nil, err
	}
	m, _ := newBertModel(t, c, e, r.DType, true)
	m.name = ""
	return bare(m.forward), nil
}

func newBertTokens(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	e, err := newEncoding(c, r)
	if err != nil {
		return nil, err
	}
	m, _ := newBertModel(t, c, e, r.DType, false)
	return newTokenClassifier(t, c, m.forward, r), nil
}

// newTokenClassifier makes the head of BERT.
func newTokenClassifier(t *torch.Torch, c *bertConfig, below trunk, r Run) *Model {
	h := &tokenClassifier{
		trunk: below, name: "classifier", classifier: t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier"),
		dropout: c.classifierDropout(), train: r.Train,
	}
	return &Model{Forward: h.forward}
}

func newBertSpans(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	e, err := newEncoding(c, r)
	if err != nil {
		return nil, err
	}
	m, _ := newBertModel(t, c, e, r.DType, false)
	return newSpanClassifier(t, c, m.forward, r), nil
}

// newSpanClassifier makes the head of BERT.
func newSpanClassifier(t *torch.Torch, c *bertConfig, below trunk, r Run) *Model {
	h := &spanClassifier{trunk: below, classifier: t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("qa_outputs"), train: r.Train}
	return &Model{Forward: h.forward}
}
