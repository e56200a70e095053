package models

import "memorymark/internal/torch"

// This file is what GPT-2 does otherwise in transformers 4.

// maskBuffers are those of GPT2Attention in transformers 4: the causal mask
// torch.tril(torch.ones(…)) of all positions, and the number that stands for
// what it masks.
func (m *gpt2) maskBuffers(t *torch.Torch) (causal, number *torch.Tensor) {
	n := m.cfg.MaxPositions
	ones := t.Buffer(torch.Bool, n, n)
	causal = t.Buffer(torch.Bool, 1, 1, n, n)
	t.Release(ones)
	return causal, t.Buffer(m.run.DType)
}

// embeddings are the positions and the embeddings of tokens, as names of the
// model's. Transformers 4.51 makes the positions first.
func (m *gpt2) embeddings(t *torch.Torch, f *torch.Frame, batch *Batch) (positions, embeds *torch.Var) {
	positions, embeds = f.Let(torch.Value{}), f.Let(torch.Value{})
	position := func() { positions.Set(positionsOf(t, batch.IDs.Dim(1), m.run.Versions)) }
	if m.run.Versions.Transformers.Before(4, 57) {
		position()
	}
	embeds.Set(t.In("wte", func() torch.Value { return t.Embedding(torch.Borrow(batch.IDs), m.wte) }))
	if !m.run.Versions.Transformers.Before(4, 57) {
		position()
	}
	return positions, embeds
}

// maskScores is what transformers 4 does to scores: it divides them by a tensor,
// and takes those that the block's own buffer lets through.
func (m *gpt2) maskScores(t *torch.Torch, f *torch.Frame, b *gpt2Block, scores *torch.Var) {
	scores.Set(t.Div(scores, t.Full(scores.Tensor().DType)))
	s := scores.Tensor().Dim(2)
	causal := f.Let(t.Slice(t.Slice(torch.Borrow(b.causal), 2, 0, s), 3, 0, s))
	value := f.Let(t.Full(scores.Tensor().DType))
	scores.Set(t.Where(causal, scores, value))
}
