package models

import "memorymark/internal/torch"

// debertaClassifier is DebertaV2ForSequenceClassification.
type debertaClassifier struct {
	*deberta
	pooler, classifier *torch.Linear
	poolerAct          activation
	dropout            float64
}

func newDeberta(t *torch.Torch, c *debertaConfig, r Run) (*Model, error) {
	m, err := newDebertaModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &debertaClassifier{deberta: m, poolerAct: activations[c.PoolerAct], dropout: c.HiddenDropout}
	if c.ClassifierDropout != nil {
		h.dropout = *c.ClassifierDropout
	}
	h.pooler = t.NewLinear(c.HiddenSize, c.HiddenSize, true, r.DType).Named("pooler.dense")
	h.classifier = t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier")
	return &Model{Forward: h.forward}, nil
}

func (m *debertaClassifier) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	labels := f.Let(torch.Value{})
	hidden := m.deberta.forward(t, batch).let(f)
	pooled := f.Let(m.pool(t, hidden))
	pooled.Set(t.Dropout(pooled, m.dropout, m.run.Train))
	logits := f.Let(t.In("classifier", func() torch.Value { return t.Linear(pooled, m.classifier) }))
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(m.loss(t, f, logits, labels, batch))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(logits)}
	f.End()
	return out
}

// pool is ContextPooler: the first token.
func (m *debertaClassifier) pool(t *torch.Torch, hidden *torch.Var) torch.Value {
	f := t.Enter().In("pooler")
	token := f.Let(firstToken(t, hidden))
	token.Set(t.Dropout(token, m.cfg.PoolerDropout, m.run.Train))
	pooled := f.Let(t.Linear(token, m.pooler))
	pooled.Set(m.poolerAct(t, pooled))
	return f.Return(pooled)
}

// loss is computed of those samples that have a label, which are all of them.
func (m *debertaClassifier) loss(t *torch.Torch, f *torch.Frame, logits, labels *torch.Var, batch *Batch) torch.Value {
	labelled := f.Let(t.NonzeroAll(t.Compare(torch.Borrow(batch.Labels))))
	n := batch.Labels.Dim(0)
	chosen := f.Let(t.Gather(logits, t.Expand(labelled, n, m.cfg.NumLabels)))
	labels.Set(t.Gather(torch.Borrow(batch.Labels), t.View(labelled, -1)))
	return t.CrossEntropy(t.To(t.View(chosen, -1, m.cfg.NumLabels), torch.Float32), t.View(labels, -1))
}

func newDebertaTokens(t *torch.Torch, c *debertaConfig, r Run) (*Model, error) {
	m, err := newDebertaModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &tokenClassifier{
		trunk: m.forward, name: "classifier", classifier: t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("classifier"),
		dropout: c.HiddenDropout, train: r.Train,
	}
	return &Model{Forward: h.forward}, nil
}

func newDebertaSpans(t *torch.Torch, c *debertaConfig, r Run) (*Model, error) {
	m, err := newDebertaModel(t, c, r)
	if err != nil {
		return nil, err
	}
	h := &spanClassifier{trunk: m.forward, classifier: t.NewLinear(c.HiddenSize, c.NumLabels, true, r.DType).Named("qa_outputs"), train: r.Train}
	return &Model{Forward: h.forward}, nil
}

func newDebertaMaskedLM(t *torch.Torch, c *debertaConfig, r Run) (*Model, error) {
	m, err := newDebertaModel(t, c, r)
	if err != nil {
		return nil, err
	}
	keys := &bertConfig{HiddenSize: c.HiddenSize, VocabSize: c.VocabSize, TieWordEmbeddings: c.TieWordEmbeddings}
	head := vocabularyHead{name: "cls.predictions", act: m.act, tie: tieBiasFirst, ownBias: true}
	if r.Versions.Transformers.Before(5, 0) {
		head.tie, head.ownBias = tieFrom4, false
	}
	return newMaskedLM(t, keys, m.forward, head, m.word, r.DType), nil
}

func newDebertaAlone(t *torch.Torch, c *debertaConfig, r Run) (*Model, error) {
	m, err := newDebertaModel(t, c, r)
	if err != nil {
		return nil, err
	}
	m.name = ""
	return bare(m.forward), nil
}
