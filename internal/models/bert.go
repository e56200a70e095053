package models

import (
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// This file is BertForSequenceClassification
// (transformers/models/bert/modeling_bert.py).

type bertEmbeddings struct {
	word, position, tokenType *torch.Embedding
	norm                      *torch.LayerNorm
	positionIDs, tokenTypeIDs *torch.Tensor
	dropout                   float64
}

func newBertEmbeddings(t *torch.Torch, c *workload.Bert, dtype torch.DType) *bertEmbeddings {
	return &bertEmbeddings{
		word:         t.NewEmbedding(c.VocabSize, c.HiddenSize, dtype),
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

// bertModel is BertModel, and RobertaModel, which differs in its embeddings.
type bertModel struct {
	*encoding
	name   string // what the model around it calls it
	embed  func(t *torch.Torch, ids *torch.Tensor, train bool) torch.Value
	layers []layer
	pooler *torch.Linear // nil without one
}

func newBertModel(t *torch.Torch, c *workload.Bert, e *encoding, dtype torch.DType, pooler bool) (*bertModel, *bertEmbeddings) {
	embeddings := newBertEmbeddings(t, c, dtype)
	m := &bertModel{encoding: e, name: "bert", embed: embeddings.forward, layers: newBertLayers(t, c, e, dtype)}
	if pooler {
		m.pooler = t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype)
	}
	initPositions(t, c.MaxPositions)
	return m, embeddings
}

// initPositions is the one allocation of _init_weights: position ids, which
// are copied over those that are there.
func initPositions(t *torch.Torch, positions int64) { t.Release(t.Buffer(torch.Int64, positions)) }

// forward returns last_hidden_state and pooler_output.
func (m *bertModel) forward(t *torch.Torch, batch *Batch) (hidden, pooled torch.Value) {
	f := t.Enter().In(m.name)
	mask := f.Let(torch.Value{})
	embedded := f.Let(m.embed(t, batch.IDs, m.train))
	mask.Set(bidirectionalMask(t, m.padding(batch), embedded, m.attention))
	last := f.Let(m.encode(t, m.layers, embedded, mask))
	first := f.Let(torch.Value{})
	if m.pooler != nil {
		first.Set(t.In("pooler", func() torch.Value { return t.Tanh(t.Linear(t.Select(last, 1), m.pooler)) }))
	}
	hidden, pooled = f.Keep(last), f.Keep(first)
	f.End()
	return hidden, pooled
}

type bertClassifier struct {
	*bertModel
	dropout    float64
	classifier *torch.Linear
	labels     int64
}

// newBert makes the model, parameters in the order of its constructors.
func newBert(t *torch.Torch, c *workload.Bert, w *workload.Workload, dtype torch.DType) (*Model, error) {
	e, err := newEncoding(c, w)
	if err != nil {
		return nil, err
	}
	m := &bertClassifier{dropout: c.HiddenDropout, labels: c.NumLabels}
	if c.ClassifierDropout != nil {
		m.dropout = *c.ClassifierDropout
	}
	m.bertModel, _ = newBertModel(t, c, e, dtype, true)
	m.classifier = t.NewLinear(c.HiddenSize, c.NumLabels, true, dtype)
	return &Model{Forward: m.forward, Kind: Tokens, NumLabels: c.NumLabels}, nil
}

func (m *bertClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	hidden, output := m.bertModel.forward(t, batch)
	f.Let(hidden)
	pooled := f.Let(t.Dropout(f.Let(output), m.dropout, m.train))
	scores := t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) })
	return classified(t, f, scores, batch)
}
