package models

import (
	"memorymark/internal/torch"
)

// This file is BertForMaskedLM (transformers/models/bert/modeling_bert.py) and
// what RobertaForMaskedLM shares with it.

// maskedLM is a model with a head over the vocabulary: BertOnlyMLMHead or
// RobertaLMHead, which compute the same.
type maskedLM struct {
	vocabularyHead
	trunk
	dense   *torch.Linear
	norm    *torch.LayerNorm
	decoder *torch.Linear
}

// vocabularyHead is what such heads differ in.
type vocabularyHead struct {
	name    string // what the model calls it
	act     activation
	tie     tying
	ownBias bool // the decoder is made with a bias, which is not the one that it has in the end
}

// tying is how a head's layer shares a bias and, unless it is nil, a table, in the
// order of the model's _tied_weights_keys.
type tying func(t *torch.Torch, m *torch.Linear, word *torch.Embedding, bias *torch.Tensor)

func tieWeightFirst(t *torch.Torch, m *torch.Linear, word *torch.Embedding, bias *torch.Tensor) {
	if word != nil {
		t.TieBiased(m, word)
		t.TieBias(m, bias)
	}
}

func tieBiasFirst(t *torch.Torch, m *torch.Linear, word *torch.Embedding, bias *torch.Tensor) {
	if word != nil {
		t.TieBias(m, bias)
		t.TieBiased(m, word)
	}
}

// tieFrom4 shares the bias in any case, when the layer is made: transformers 4.
func tieFrom4(t *torch.Torch, m *torch.Linear, word *torch.Embedding, bias *torch.Tensor) {
	t.ShareBias(m, bias)
	if word != nil {
		t.TieBiased(m, word)
	}
}

// newMaskedLM makes the head of a model.
func newMaskedLM(t *torch.Torch, c *bertConfig, below trunk, head vocabularyHead, word *torch.Embedding, dtype torch.DType) *Model {
	h := &maskedLM{
		vocabularyHead: head,
		trunk:          below,
		dense:          t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype).Named(head.name + ".dense"),
		norm:           t.NewLayerNorm(c.HiddenSize, dtype),
		decoder:        t.NewLinear(c.HiddenSize, c.VocabSize, head.ownBias, dtype).AsOutput(head.name + ".decoder"),
	}
	bias := t.Parameter(dtype, c.VocabSize).Named("bias")
	t.ListBefore(bias, h.dense.Weight)
	if !c.TieWordEmbeddings {
		word = nil
	}
	head.tie(t, h.decoder, word, bias)
	return &Model{Forward: h.forward}
}

func newBertMaskedLM(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	e, err := newEncoding(c, r)
	if err != nil {
		return nil, err
	}
	m, embeddings := newBertModel(t, c, e, r.DType, false)
	head := vocabularyHead{name: "cls.predictions", act: e.act, tie: tieWeightFirst, ownBias: true}
	if e.isOf4() {
		head.tie, head.ownBias = tieFrom4, false
	}
	return newMaskedLM(t, c, m.forward, head, embeddings.word, r.DType), nil
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
	f := t.Enter().In(m.name)
	x := f.Let(t.Linear(hidden, m.dense))
	x.Set(m.act(t, x))
	x.Set(t.LayerNorm(x, m.norm))
	x.Set(t.Linear(x, m.decoder))
	return f.Return(x)
}
