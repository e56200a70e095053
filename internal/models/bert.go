package models

import (
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var bertFamily = Family{
	Type: "bert", Versions: []Versions{newest, last4, older4}, read: reads(readBert),
	Heads: []Head{
		head("BertForSequenceClassification", Classes, newBert),
		head("BertForTokenClassification", TokenTags, newBertTokens),
		head("BertForQuestionAnswering", Spans, newBertSpans),
		head("BertForMaskedLM", SameIDs, newBertMaskedLM),
		head("BertModel", NoLabels, newBertAlone),
	},
}

// bertConfig is transformers' BertConfig, and RobertaConfig, which has its keys.
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

	reserved int64 // positions that no token has
}

// positions are those that there are embeddings for. RoBERTa counts them from
// padding_idx + 1, which is 2.
func (c *bertConfig) positions() (most int64, key string) {
	return c.MaxPositions - c.reserved, "max_position_embeddings"
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
func readBert(c *hfconfig.Config) (*bertConfig, error) { return readBertKeys(c, 30522, 0) }

// readRoberta reads a RoBERTa configuration.
func readRoberta(c *hfconfig.Config) (*bertConfig, error) { return readBertKeys(c, 50265, 2) }

// readXLMRoberta reads an XLM-RoBERTa configuration.
func readXLMRoberta(c *hfconfig.Config) (*bertConfig, error) { return readBertKeys(c, 30522, 2) }

func readBertKeys(c *hfconfig.Config, vocabulary, reserved int64) (*bertConfig, error) {
	b := &bertConfig{
		VocabSize: vocabulary, HiddenSize: 768, Layers: 12, Heads: 12, IntermediateSize: 3072, HiddenAct: "gelu",
		HiddenDropout: 0.1, AttentionDropout: 0.1, MaxPositions: 512, TypeVocabSize: 2, NumLabels: 2, TieWordEmbeddings: true,
		reserved: reserved,
	}
	return b, b.decode(c, b)
}

// decode reads a configuration into a struct that is c or holds it.
func (c *bertConfig) decode(config *hfconfig.Config, into any, alsoIgnored ...string) error {
	err := config.Decode(into, append(alsoIgnored, "layer_norm_eps", "use_cache", "position_embedding_type", "gradient_checkpointing", "output_past", "directionality",
		"pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type")...)
	if err != nil {
		return err
	}
	if c.Decoder || c.CrossAttention {
		return fmt.Errorf("config: a %s as a decoder is not modelled", config.ModelType)
	}
	return checkEncoder(c.NumLabels, c.ChunkSize, c.HiddenDropout, c.AttentionDropout)
}

// This file is BertModel and its heads but BertForMaskedLM
// (transformers/models/bert/modeling_bert.py).

type bertEmbeddings struct {
	word, position, tokenType *torch.Embedding
	norm                      *torch.LayerNorm
	positionIDs, tokenTypeIDs *torch.Tensor
	dropout                   float64
	of4                       bool // as transformers 4 adds them
}

func newBertEmbeddings(t *torch.Torch, c *bertConfig, dtype torch.DType) *bertEmbeddings {
	return &bertEmbeddings{
		word:         t.NewEmbedding(c.VocabSize, c.HiddenSize, dtype).AsInput("word_embeddings"),
		position:     t.NewEmbedding(c.MaxPositions, c.HiddenSize, dtype),
		tokenType:    t.NewEmbedding(c.TypeVocabSize, c.HiddenSize, dtype),
		norm:         t.NewLayerNorm(c.HiddenSize, dtype),
		positionIDs:  t.Buffer(torch.Int64, 1, c.MaxPositions),
		tokenTypeIDs: t.Buffer(torch.Int64, 1, c.MaxPositions),
		dropout:      c.HiddenDropout,
	}
}

func (e *bertEmbeddings) forward(t *torch.Torch, ids *torch.Tensor, train bool) torch.Value {
	return e.sum(t, ids, t.Slice(torch.Borrow(e.positionIDs), 1, 0, ids.Dim(1)), train)
}

// sum is what the forward functions of BERT and RoBERTa do once they have the
// positions. Names of arguments that were left out go before other names.
func (e *bertEmbeddings) sum(t *torch.Torch, ids *torch.Tensor, positionIDs torch.Value, train bool) torch.Value {
	f := t.Enter().In("embeddings")
	types := f.Let(torch.Value{})
	positions := f.Let(positionIDs)
	inputs := f.Let(torch.Value{})
	if e.of4 {
		types.Set(t.Expand(t.Slice(torch.Borrow(e.tokenTypeIDs), 1, 0, ids.Dim(1)), ids.Dim(0), -1))
	} else {
		buffered := f.Let(t.Expand(torch.Borrow(e.tokenTypeIDs), positions.Tensor().Dim(0), -1))
		buffered.Set(t.Gather(buffered, positions))
		types.Set(t.Expand(buffered, ids.Dim(0), ids.Dim(1)))
	}
	inputs.Set(t.Embedding(torch.Borrow(ids), e.word))
	typed := f.Let(t.Embedding(types, e.tokenType))
	sum := f.Let(t.Add(inputs, typed))
	positioned := f.Let(t.Embedding(positions, e.position))
	if e.of4 {
		t.AddInPlace(sum, positioned)
	} else {
		sum.Set(t.Add(sum, positioned))
	}
	sum.Set(t.LayerNorm(sum, e.norm))
	sum.Set(t.Dropout(sum, e.dropout, train))
	return f.Return(sum)
}

// bertModel is BertModel, and RobertaModel, which differs in its embeddings.
type bertModel struct {
	*encoding
	name   string // what the model around it calls it, "" if there is none
	embed  func(t *torch.Torch, ids *torch.Tensor, train bool) torch.Value
	layers []layer
	pooler *torch.Linear // nil without one
	// masksFirst says that the mask comes before the embeddings, as ELECTRA's of
	// transformers 4 does.
	masksFirst bool
}

func newBertModel(t *torch.Torch, c *bertConfig, e *encoding, dtype torch.DType, pooler bool) (*bertModel, *bertEmbeddings) {
	embeddings := newBertEmbeddings(t, c, dtype)
	m := &bertModel{encoding: e, name: "bert", embed: embeddings.forward, layers: newBertLayers(t, c, e, dtype)}
	if pooler {
		m.pooler = t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype).Named("pooler.dense")
	}
	e.versions.initPositions(t, c.MaxPositions)
	embeddings.of4 = e.isOf4()
	return m, embeddings
}

// initPositions is the one allocation of _init_weights in transformers 5: position
// ids, which are copied over those that are there.
func (v Versions) initPositions(t *torch.Torch, positions int64) {
	if !v.Transformers.Before(5, 0) {
		t.Release(t.Buffer(torch.Int64, positions))
	}
}

// mask makes what layers take of the mask that the model is given.
func (m *bertModel) mask(t *torch.Torch, given *torch.Var, batch *Batch, embedded *torch.Var) torch.Value {
	dtype := embedded.Tensor().DType
	switch {
	case !m.isOf4():
		return bidirectionalMask(t, m.padding(batch), embedded, m.eager)
	case m.eager:
		return extendedMask4(t, given, dtype)
	default:
		return sdpaMask4(t, given, batch, dtype)
	}
}

func (m *bertModel) forward(t *torch.Torch, batch *Batch) trunkOutput {
	f := enter(t, m.name)
	given := f.Let(torch.Value{})
	if m.isOf4() && batch.Mask == nil {
		lookForPadding(t, batch.IDs)
	}
	if m.masksFirst {
		return m.forwardMasked4(t, f, given, batch)
	}
	embedded := f.Let(m.embed(t, batch.IDs, m.train))
	mask := given
	if m.isOf4() {
		mask = f.Let(torch.Value{}) // extended_attention_mask
		given.Set(given4(t, batch))
	}
	mask.Set(m.mask(t, given, batch, embedded))
	last := f.Let(m.encode(t, m.layers, embedded, mask))
	first := f.Let(torch.Value{})
	if m.pooler != nil {
		first.Set(t.In("pooler", func() torch.Value { return t.Tanh(t.Linear(firstToken(t, last), m.pooler)) }))
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

// newTokenClassifier makes the head of BERT and RoBERTa.
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

// newSpanClassifier makes the head of BERT and RoBERTa.
func newSpanClassifier(t *torch.Torch, c *bertConfig, below trunk, r Run) *Model {
	h := &spanClassifier{trunk: below, classifier: t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("qa_outputs"), train: r.Train}
	return &Model{Forward: h.forward}
}
