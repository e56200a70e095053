package models

import (
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// This file is DistilBertForSequenceClassification
// (transformers/models/distilbert/modeling_distilbert.py).

type distilBert struct {
	*encoding
	word, position            *torch.Embedding
	norm                      *torch.LayerNorm
	positionIDs               *torch.Tensor
	layers                    []layer
	preClassifier, classifier *torch.Linear
	classifierDropout         float64
}

// distilBertLayer is TransformerBlock.
type distilBertLayer struct {
	*encoding
	query, key, value, out *torch.Linear
	attentionNorm          *torch.LayerNorm
	lin1, lin2             *torch.Linear
	outputNorm             *torch.LayerNorm
}

func newDistilBert(t *torch.Torch, c *workload.DistilBert, w *workload.Workload, dtype torch.DType) (*Model, error) {
	e, err := newEncoding(&workload.Bert{
		HiddenSize: c.Dim, Heads: c.Heads, HiddenAct: c.Activation, HiddenDropout: c.Dropout, AttentionDropout: c.AttentionDropout,
	}, w)
	if err != nil {
		return nil, err
	}
	e.encoder = "transformer"
	m := &distilBert{
		encoding:          e,
		word:              t.NewEmbedding(c.VocabSize, c.Dim, dtype),
		position:          t.NewEmbedding(c.MaxPositions, c.Dim, dtype),
		norm:              t.NewLayerNorm(c.Dim, dtype),
		positionIDs:       t.Buffer(torch.Int64, 1, c.MaxPositions),
		classifierDropout: c.ClassifierDropout,
	}
	for range c.Layers {
		l := &distilBertLayer{
			encoding:      e,
			query:         t.NewLinear(c.Dim, c.Dim, true, dtype),
			key:           t.NewLinear(c.Dim, c.Dim, true, dtype),
			value:         t.NewLinear(c.Dim, c.Dim, true, dtype),
			out:           t.NewLinear(c.Dim, c.Dim, true, dtype),
			attentionNorm: t.NewLayerNorm(c.Dim, dtype),
			lin1:          t.NewLinear(c.Dim, c.HiddenDim, true, dtype),
			lin2:          t.NewLinear(c.HiddenDim, c.Dim, true, dtype),
			outputNorm:    t.NewLayerNorm(c.Dim, dtype),
		}
		m.layers = append(m.layers, l.forward)
	}
	initPositions(t, c.MaxPositions)
	m.preClassifier = t.NewLinear(c.Dim, c.Dim, true, dtype)
	m.classifier = t.NewLinear(c.Dim, c.NumLabels, true, dtype)
	return &Model{Forward: m.forward, Kind: Tokens, NumLabels: c.NumLabels}, nil
}

func (m *distilBert) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	hidden := f.Let(m.base(t, batch))
	pooled := f.Let(t.Select(hidden, 1))
	pooled.Set(t.In("pre_classifier", func() torch.Value { return t.Linear(pooled, m.preClassifier) }))
	pooled.Set(t.ReLU(pooled))
	pooled.Set(t.Dropout(pooled, m.classifierDropout, m.train))
	scores := t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) })
	return classified(t, f, scores, batch)
}

// base is DistilBertModel.forward.
func (m *distilBert) base(t *torch.Torch, batch *Batch) torch.Value {
	f := t.Enter().In("distilbert")
	mask := f.Let(torch.Value{})
	embedded := f.Let(m.embed(t, batch.IDs))
	mask.Set(bidirectionalMask(t, m.padding(batch), embedded, m.attention))
	return f.Return(m.encode(t, m.layers, embedded, mask))
}

func (m *distilBert) embed(t *torch.Torch, ids *torch.Tensor) torch.Value {
	f := t.Enter().In("embeddings")
	inputs := f.Let(t.Embedding(torch.Borrow(ids), m.word))
	positions := f.Let(t.Slice(torch.Borrow(m.positionIDs), 1, 0, ids.Dim(1)))
	positioned := f.Let(t.Embedding(positions, m.position))
	sum := f.Let(t.Add(inputs, positioned))
	sum.Set(t.LayerNorm(sum, m.norm))
	sum.Set(t.Dropout(sum, m.hiddenDropout, m.train))
	return f.Return(sum)
}

func (l *distilBertLayer) forward(t *torch.Torch, hidden, mask *torch.Var) torch.Value {
	f := t.Enter(hidden)
	output, weights := l.selfAttention(t, hidden, mask)
	attended := f.Let(output)
	f.Let(weights) // attention_output, _ = ...
	attended.Set(t.LayerNorm(t.Add(attended, hidden), l.attentionNorm))
	out := f.Let(l.feedForward(t, attended))
	out.Set(t.LayerNorm(t.Add(out, attended), l.outputNorm))
	return f.Return(out)
}

func (l *distilBertLayer) selfAttention(t *torch.Torch, hidden, mask *torch.Var) (out, weights torch.Value) {
	f := t.Enter().In("attention")
	output, weights := l.attend(t, f, hidden, mask, l.query, l.key, l.value)
	output.Set(t.Linear(output, l.out))
	return f.Return(output), weights
}

// feedForward is FFN.
func (l *distilBertLayer) feedForward(t *torch.Torch, attended *torch.Var) torch.Value {
	f := t.Enter().In("ffn")
	x := f.Let(t.Linear(attended, l.lin1))
	x.Set(l.act(t, x))
	x.Set(t.Linear(x, l.lin2))
	x.Set(t.Dropout(x, l.hiddenDropout, l.train))
	return f.Return(x)
}
