package models

import (
	"memorymark/internal/torch"
)

var robertaFamily = Family{
	Type: "roberta", Versions: []Versions{newest, last4, older4}, read: reads(readRoberta),
	Heads: []Head{
		head("RobertaForMaskedLM", SameIDs, newRobertaMaskedLM),
		head("RobertaForSequenceClassification", Classes, newRoberta),
		head("RobertaForTokenClassification", TokenTags, newRobertaTokens),
		head("RobertaForQuestionAnswering", Spans, newRobertaSpans),
		head("RobertaModel", NoLabels, newRobertaAlone),
	},
}

// This file is RobertaModel and its heads
// (transformers/models/roberta/modeling_roberta.py): BERT with positions that
// are counted from the ids, parameters in another order, and a head that knows
// no activation but GELU.

func newRobertaEmbeddings(t *torch.Torch, c *bertConfig, of4 bool, dtype torch.DType) *bertEmbeddings {
	word := t.NewEmbedding(c.VocabSize, c.HiddenSize, dtype).AsInput("word_embeddings")
	var first *torch.Embedding // a table of positions in transformers 4, in whose place the other comes
	if of4 {
		first = t.NewEmbedding(c.MaxPositions, c.HiddenSize, dtype)
	}
	e := &bertEmbeddings{
		word:         word,
		tokenType:    t.NewEmbedding(c.TypeVocabSize, c.HiddenSize, dtype),
		norm:         t.NewLayerNorm(c.HiddenSize, dtype),
		positionIDs:  t.Buffer(torch.Int64, 1, c.MaxPositions),
		tokenTypeIDs: t.Buffer(torch.Int64, 1, c.MaxPositions),
		position:     t.NewEmbedding(c.MaxPositions, c.HiddenSize, dtype),
		dropout:      c.HiddenDropout,
		of4:          of4,
	}
	if of4 {
		t.ListBefore(e.position.Weight, e.tokenType.Weight)
		t.TieTable(first, e.position)
	}
	t.OwnAfterParts(e.positionIDs, e.tokenTypeIDs)
	return e
}

func newRobertaModel(t *torch.Torch, c *bertConfig, r Run, pooler bool) (*bertModel, *bertEmbeddings, error) {
	e, err := newEncoding(c, r)
	if err != nil {
		return nil, nil, err
	}
	embeddings := newRobertaEmbeddings(t, c, e.isOf4(), r.DType)
	m := &bertModel{encoding: e, name: "roberta", embed: embeddings.forwardRoberta, layers: newBertLayers(t, c, e, r.DType)}
	if pooler {
		m.pooler = t.NewLinear(c.HiddenSize, c.HiddenSize, true, r.DType).Named("pooler.dense")
	}
	e.versions.initPositions(t, c.MaxPositions)
	return m, embeddings, nil
}

func newRobertaMaskedLM(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	m, embeddings, err := newRobertaModel(t, c, r, false)
	if err != nil {
		return nil, err
	}
	head := vocabularyHead{name: "lm_head", act: (*torch.Torch).GELU, tie: tieWeightFirst, ownBias: true}
	if m.isOf4() {
		head.tie = tieFrom4
	}
	return newMaskedLM(t, c, m.forward, head, embeddings.word, r.DType), nil
}

func newRobertaTokens(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	m, _, err := newRobertaModel(t, c, r, false)
	if err != nil {
		return nil, err
	}
	return newTokenClassifier(t, c, m.forward, r), nil
}

func newRobertaSpans(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	m, _, err := newRobertaModel(t, c, r, false)
	if err != nil {
		return nil, err
	}
	return newSpanClassifier(t, c, m.forward, r), nil
}

func newRobertaAlone(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	m, _, err := newRobertaModel(t, c, r, true)
	if err != nil {
		return nil, err
	}
	m.name = ""
	return bare(m.forward), nil
}

// robertaClassifier is RobertaForSequenceClassification, and that of ELECTRA.
type robertaClassifier struct {
	trunk
	train             bool
	act               activation
	dense, projection *torch.Linear
	dropout           float64
}

func newRoberta(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	m, _, err := newRobertaModel(t, c, r, false)
	if err != nil {
		return nil, err
	}
	return newRobertaClassifier(t, c, m.forward, (*torch.Torch).Tanh, r), nil
}

func newRobertaClassifier(t *torch.Torch, c *bertConfig, below trunk, act activation, r Run) *Model {
	h := &robertaClassifier{
		trunk:      below,
		act:        act,
		train:      r.Train,
		dense:      t.NewLinear(c.HiddenSize, c.HiddenSize, true, r.DType).Named("classifier.dense"),
		projection: t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier.out_proj"),
		dropout:    c.classifierDropout(),
	}
	return &Model{Forward: h.forward}
}

func (m *robertaClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	sequence := m.trunk(t, batch).let(f)
	return classified(t, f, m.classify(t, sequence), batch)
}

// classify is RobertaClassificationHead.
func (m *robertaClassifier) classify(t *torch.Torch, features *torch.Var) torch.Value {
	f := t.Enter(features).In("classifier")
	x := f.Let(firstTokenOnly(t, features))
	x.Set(t.Dropout(x, m.dropout, m.train))
	x.Set(t.Linear(x, m.dense))
	x.Set(m.act(t, x))
	x.Set(t.Dropout(x, m.dropout, m.train))
	x.Set(t.Linear(x, m.projection))
	return f.Return(x)
}

// forwardRoberta is RobertaEmbeddings.forward.
func (e *bertEmbeddings) forwardRoberta(t *torch.Torch, ids *torch.Tensor, train bool) torch.Value {
	return e.sum(t, ids, countPositions(t, ids), train)
}

// countPositions is create_position_ids_from_input_ids.
func countPositions(t *torch.Torch, ids *torch.Tensor) torch.Value {
	f := t.Enter()
	mask := f.Let(t.To(t.Compare(torch.Borrow(ids)), torch.Int32))
	counted := t.To(t.CumsumLast(mask), torch.Int32)
	shifted := t.Shift(counted) // + past_key_values_length
	indices := f.Let(t.Mul(shifted, mask))
	return f.Return(t.Shift(t.To(indices, torch.Int64)))
}
