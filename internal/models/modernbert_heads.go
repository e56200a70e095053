package models

import "memorymark/internal/torch"

// modernBertHead is ModernBertPredictionHead and the classifier behind it.
type modernBertHead struct {
	*modernBert
	dense      *torch.Linear
	denseNorm  *torch.LayerNorm
	classifier *torch.Linear
}

func newModernBertHead(t *torch.Torch, c *modernBertConfig, r Run) *modernBertHead {
	h := &modernBertHead{modernBert: newModernBertModel(t, c, r)}
	h.dense = t.NewLinear(c.HiddenSize, c.HiddenSize, c.ClassifierBias, r.DType).Named("head.dense")
	h.denseNorm = c.newNorm(t, r.DType)
	h.classifier = t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier")
	for _, rotary := range h.rotaries {
		rotary.cast(t, r.DType)
	}
	return h
}

func newModernBert(t *torch.Torch, c *modernBertConfig, r Run) (*Model, error) {
	return &Model{Forward: newModernBertHead(t, c, r).classes}, nil
}

func newModernBertTokens(t *torch.Torch, c *modernBertConfig, r Run) (*Model, error) {
	return &Model{Forward: newModernBertHead(t, c, r).tokens}, nil
}

func newModernBertSpans(t *torch.Torch, c *modernBertConfig, r Run) (*Model, error) {
	return &Model{Forward: newModernBertHead(t, c, r).spans}, nil
}

func newModernBertAlone(t *torch.Torch, c *modernBertConfig, r Run) (*Model, error) {
	m := newModernBertModel(t, c, r)
	m.name = ""
	for _, rotary := range m.rotaries {
		rotary.cast(t, r.DType)
	}
	return bare(m.trunk), nil
}

// predict is ModernBertPredictionHead.forward.
func (m *modernBertHead) predict(t *torch.Torch, x *torch.Var) torch.Value {
	f := t.Enter().In("head")
	return f.Return(t.LayerNorm(activations[m.cfg.ClassifierActivation](t, t.Linear(x, m.dense)), m.denseNorm))
}

// classes is ModernBertForSequenceClassification.forward.
func (m *modernBertHead) classes(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	mask := f.Let(torch.Value{}) // an argument, which may be bound
	outputs := m.trunk(t, batch).let(f)
	last := f.Let(outputs)
	if m.cfg.Pooling == poolFirst {
		last.Set(t.Select(last, 1))
	} else {
		m.meanOfTokens(t, last, mask, batch)
	}
	pooled := f.Let(m.predict(t, last))
	pooled.Set(t.Dropout(pooled, m.cfg.ClassifierDropout, m.run.Train))
	return classified(t, f, t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) }), batch)
}

// meanOfTokens is the mean over those that the mask lets through.
func (m *modernBertHead) meanOfTokens(t *torch.Torch, last, mask *torch.Var, batch *Batch) {
	if batch.Mask != nil {
		mask.Set(torch.Borrow(batch.Mask))
	} else {
		mask.Set(t.Full(torch.Bool, batch.IDs.Dim(0), batch.IDs.Dim(1)))
	}
	sum := t.Sum(t.Mul(last, t.Unsqueeze(mask, 2)), 1)
	last.Set(t.Divide(sum, t.CountLast(mask)))
}

// tokens is ModernBertForTokenClassification.forward.
func (m *modernBertHead) tokens(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	logits := m.logits(t, f, batch)
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(t.CrossEntropy(t.View(logits, -1, m.cfg.NumLabels), t.View(torch.Borrow(batch.Labels), -1)))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(logits)}
	f.End()
	return out
}

// logits are those of every token.
func (m *modernBertHead) logits(t *torch.Torch, f *torch.Frame, batch *Batch) *torch.Var {
	outputs := m.trunk(t, batch).let(f)
	last := f.Let(outputs)
	last.Set(m.predict(t, last))
	last.Set(t.Dropout(last, m.cfg.ClassifierDropout, m.run.Train))
	return f.Let(t.In("classifier", func() torch.Value { return t.Linear(last, m.classifier) }))
}

// spans is ModernBertForQuestionAnswering.forward.
func (m *modernBertHead) spans(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	logits := m.logits(t, f, batch)
	parts := t.Split(logits, 1, -1)
	start, end := f.Let(parts[0]), f.Let(parts[1])
	start.Set(t.Contiguous(t.Squeeze(start, -1)))
	end.Set(t.Contiguous(t.Squeeze(end, -1)))
	loss := f.Let(torch.Value{})
	if batch.Starts != nil {
		g := t.Enter()
		loss.Set(g.Return(spanLoss(t, g, start, end, g.Let(torch.Value{}), g.Let(torch.Value{}), batch)))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(start), Rest: []torch.Value{f.Keep(end)}}
	f.End()
	return out
}
