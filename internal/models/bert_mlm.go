package models

import "memorymark/internal/torch"

// maskedLM is BertForMaskedLM (transformers/models/bert/modeling_bert.py).
type maskedLM struct {
	trunk
	act     activation
	dense   *torch.Linear
	norm    *torch.LayerNorm
	decoder *torch.Linear
}

func newBertMaskedLM(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	e, err := newEncoding(c, r)
	if err != nil {
		return nil, err
	}
	m, embeddings := newBertModel(t, c, e, r.DType, false)
	h := &maskedLM{
		trunk: m.forward, act: e.act,
		dense:   t.NewLinear(c.HiddenSize, c.HiddenSize, true, r.DType).Named("cls.predictions.dense"),
		norm:    t.NewLayerNorm(c.HiddenSize, r.DType),
		decoder: t.NewLinear(c.HiddenSize, c.VocabSize, true, r.DType).AsOutput("cls.predictions.decoder"),
	}
	bias := t.Parameter(r.DType, c.VocabSize).Named("bias")
	t.ListBefore(bias, h.dense.Weight)
	if c.TieWordEmbeddings {
		t.TieBiased(h.decoder, embeddings.word)
		t.TieBias(h.decoder, bias)
	}
	return &Model{Forward: h.forward}, nil
}

func (m *maskedLM) forward(t *torch.Torch, batch *Batch) Output {
	f := t.Enter()
	hidden := m.trunk(t, batch).let(f)
	scores := f.Let(m.predict(t, hidden))
	loss := f.Let(torch.Value{})
	if batch.Labels != nil {
		loss.Set(t.In("loss_fct", func() torch.Value {
			return t.CrossEntropy(t.View(scores, -1, scores.Tensor().Dim(-1)), t.View(torch.Borrow(batch.Labels), -1))
		}))
	}
	out := Output{Loss: f.Keep(loss), Logits: f.Keep(scores)}
	f.End()
	return out
}

// predict is the head's forward function.
func (m *maskedLM) predict(t *torch.Torch, hidden *torch.Var) torch.Value {
	f := t.Enter().In("cls.predictions")
	x := f.Let(t.Linear(hidden, m.dense))
	x.Set(m.act(t, x))
	x.Set(t.LayerNorm(x, m.norm))
	x.Set(t.Linear(x, m.decoder))
	return f.Return(x)
}
