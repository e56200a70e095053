package models

import (
	"memorymark/internal/torch"
)

var robertaFamily = Family{
	Type: "roberta", read: reads(readRoberta),
	Heads: []Head{head("RobertaForMaskedLM", SameIDs, newRobertaMaskedLM)},
}

// This file is RobertaForMaskedLM
// (transformers/models/roberta/modeling_roberta.py): BERT with positions that
// are counted from the ids, parameters in another order, and a head that knows
// no activation but GELU.

func newRobertaEmbeddings(t *torch.Torch, c *bertConfig, dtype torch.DType) *bertEmbeddings {
	return &bertEmbeddings{
		word:         t.NewEmbedding(c.VocabSize, c.HiddenSize, dtype),
		tokenType:    t.NewEmbedding(c.TypeVocabSize, c.HiddenSize, dtype),
		norm:         t.NewLayerNorm(c.HiddenSize, dtype),
		positionIDs:  t.Buffer(torch.Int64, 1, c.MaxPositions),
		tokenTypeIDs: t.Buffer(torch.Int64, 1, c.MaxPositions),
		position:     t.NewEmbedding(c.MaxPositions, c.HiddenSize, dtype),
		dropout:      c.HiddenDropout,
	}
}

func newRobertaMaskedLM(t *torch.Torch, c *bertConfig, r Run) (*Model, error) {
	e, err := newEncoding(c, r)
	if err != nil {
		return nil, err
	}
	embeddings := newRobertaEmbeddings(t, c, r.DType)
	m := &bertModel{encoding: e, name: "roberta", embed: embeddings.forwardRoberta, layers: newBertLayers(t, c, e, r.DType)}
	initPositions(t, c.MaxPositions)
	return newMaskedLM(t, c, m, "lm_head", embeddings.word, (*torch.Torch).GELU, r.DType), nil
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
