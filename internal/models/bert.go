package models

import (
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

type bertEmbeddings struct {
	word, position, tokenType *torch.Embedding
	norm                      *torch.LayerNorm
	positionIDs, tokenTypeIDs *torch.Tensor
}

type bertLayer struct {
	query, key, value, attentionOutput *torch.Linear
	attentionNorm                      *torch.LayerNorm
	intermediate, output               *torch.Linear
	outputNorm                         *torch.LayerNorm
}

// bert is BertForSequenceClassification
// (transformers/models/bert/modeling_bert.py).
type bert struct {
	cfg        *workload.Bert
	train      bool
	embeddings bertEmbeddings
	layers     []bertLayer
	pooler     *torch.Linear
	classifier *torch.Linear
}

// newBert makes the model, parameters in the order of its constructors.
func newBert(t *torch.Torch, c *workload.Bert, w *workload.Workload, dtype torch.DType) *Model {
	m := &bert{cfg: c, train: w.Mode == workload.Training}
	e := &m.embeddings
	e.word = t.NewEmbedding(c.VocabSize, c.HiddenSize, dtype)
	e.position = t.NewEmbedding(c.MaxPositions, c.HiddenSize, dtype)
	e.tokenType = t.NewEmbedding(c.TypeVocabSize, c.HiddenSize, dtype)
	e.norm = t.NewLayerNorm(c.HiddenSize, dtype)
	e.positionIDs = t.Buffer(torch.Int64, 1, c.MaxPositions)
	e.tokenTypeIDs = t.Buffer(torch.Int64, 1, c.MaxPositions)
	for range c.Layers {
		m.layers = append(m.layers, bertLayer{
			query:           t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype),
			key:             t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype),
			value:           t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype),
			attentionOutput: t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype),
			attentionNorm:   t.NewLayerNorm(c.HiddenSize, dtype),
			intermediate:    t.NewLinear(c.HiddenSize, c.IntermediateSize, true, dtype),
			output:          t.NewLinear(c.IntermediateSize, c.HiddenSize, true, dtype),
			outputNorm:      t.NewLayerNorm(c.HiddenSize, dtype),
		})
	}
	m.pooler = t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype)
	// _init_weights makes position ids anew and copies them over.
	t.Release(t.Buffer(torch.Int64, c.MaxPositions))
	m.classifier = t.NewLinear(c.HiddenSize, c.NumLabels, true, dtype)
	return &Model{Forward: m.forward, Kind: Tokens, NumLabels: c.NumLabels}
}

func (m *bert) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	hidden := f.Let(m.embed(t, batch.IDs))
	for i := range m.layers {
		hidden.Set(m.layer(t, &m.layers[i], hidden))
	}
	pooled := f.Let(t.Tanh(t.Linear(t.Select(hidden, 1), m.pooler)))
	g := t.Enter()
	dropped := g.Let(t.Dropout(pooled, m.classifierDropout(), m.train))
	scores := f.Let(t.Linear(dropped, m.classifier))
	var loss torch.Value
	if batch.Labels != nil {
		l := f.Let(t.CrossEntropy(t.View(scores, -1, m.cfg.NumLabels), torch.Borrow(batch.Labels)))
		loss = f.Keep(l)
	}
	out := Output{Loss: loss, Logits: f.Keep(scores)}
	g.End()
	f.End()
	return out
}

func (m *bert) classifierDropout() float64 {
	if p := m.cfg.ClassifierDropout; p != nil {
		return *p
	}
	return m.cfg.HiddenDropout
}

func (m *bert) embed(t *torch.Torch, ids *torch.Tensor) torch.Value {
	e := &m.embeddings
	f := t.Enter()
	b, s := ids.Shape[0], ids.Shape[1]
	positions := f.Let(t.Slice(torch.Borrow(e.positionIDs), 1, 0, s))
	buffered := f.Let(t.Expand(torch.Borrow(e.tokenTypeIDs), 1, -1))
	buffered.Set(t.Gather(buffered, positions))
	types := f.Let(t.Expand(buffered, b, s))
	inputs := f.Let(t.Embedding(torch.Borrow(ids), e.word))
	typed := f.Let(t.Embedding(types, e.tokenType))
	sum := f.Let(t.Add(inputs, typed))
	positioned := f.Let(t.Embedding(positions, e.position))
	sum.Set(t.Add(sum, positioned))
	sum.Set(t.LayerNorm(sum, e.norm))
	sum.Set(t.Dropout(sum, m.cfg.HiddenDropout, m.train))
	return f.Return(sum)
}

func (m *bert) layer(t *torch.Torch, l *bertLayer, hidden *torch.Var) torch.Value {
	f := t.Enter(hidden)
	attended := f.Let(m.attention(t, l, hidden))
	middle := f.Let(t.GELU(t.Linear(attended, l.intermediate)))
	out := f.Let(m.output(t, middle, attended, l.output, l.outputNorm))
	return f.Return(out)
}

func (m *bert) attention(t *torch.Torch, l *bertLayer, hidden *torch.Var) torch.Value {
	f := t.Enter(hidden)
	b, s := hidden.Tensor().Shape[0], hidden.Tensor().Shape[1]
	size := m.cfg.HiddenSize / m.cfg.Heads
	split := func(x torch.Value) *torch.Var {
		return f.Let(t.Transpose(t.View(x, b, s, -1, size), 1, 2))
	}
	q := split(t.Linear(hidden, l.query))
	k := split(t.Linear(hidden, l.key))
	v := split(t.Linear(hidden, l.value))
	p := m.cfg.AttentionDropout
	if !m.train {
		p = 0
	}
	context := f.Let(t.Contiguous(t.Transpose(t.Attention(q, k, v, nil, p, false, false), 1, 2)))
	context.Set(t.Contiguous(t.Reshape(context, b, s, -1)))
	out := f.Let(m.output(t, context, hidden, l.attentionOutput, l.attentionNorm))
	return f.Return(out)
}

// output is BertSelfOutput and BertOutput.
func (m *bert) output(t *torch.Torch, x, residual torch.X, dense *torch.Linear, norm *torch.LayerNorm) torch.Value {
	f := t.Enter(x, residual)
	h := f.Let(t.Linear(x, dense))
	h.Set(t.Dropout(h, m.cfg.HiddenDropout, m.train))
	h.Set(t.LayerNorm(t.Add(h, residual), norm))
	return f.Return(h)
}
