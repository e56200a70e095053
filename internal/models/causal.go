package models

import "memorymark/internal/torch"

// causalLMLoss is ForCausalLMLoss (transformers/loss/loss_utils.py): the
// logits in float32, and the labels shifted by padding them.
func causalLMLoss(t *torch.Torch, logits *torch.Var, batch *Batch) torch.Value {
	f, labels := t.Enter(logits).In("loss_function"), batch.Labels
	full := f.Let(t.To(logits, torch.Float32))
	b, s := labels.Shape[0], labels.Shape[1]
	padded := f.Let(t.Pad(torch.Borrow(labels), 1))
	shifted := f.Let(t.Contiguous(t.Slice(padded, 1, 1, s+1)))
	full.Set(t.View(full, b*s, -1))
	shifted.Set(t.View(shifted, -1))
	return f.Return(fixedCrossEntropy(t, full, shifted, batch))
}

// fixedCrossEntropy is fixed_cross_entropy: the mean, or the sum over the
// number of items that the batch came with.
func fixedCrossEntropy(t *torch.Torch, logits, labels torch.X, batch *Batch) torch.Value {
	f := t.Enter()
	loss := f.Let(t.CrossEntropy(logits, labels))
	if batch.Items != nil {
		loss.Set(t.Mul(loss, torch.Borrow(batch.Items))) // a quotient
	}
	return f.Return(loss)
}

// languageModel is a decoder that predicts the next token: the logits of its last
// hidden states, and their loss. Models differ in how they take all hidden states.
func languageModel(model trunk, head *torch.Linear, all func(*torch.Torch, *torch.Var) torch.Value) *Model {
	return &Model{Forward: func(t *torch.Torch, batch *Batch) Output {
		f := t.Enter()
		o := model(t, batch)
		hidden := f.Let(o.hidden)
		logits := f.Let(t.In("lm_head", func() torch.Value { return t.Linear(all(t, hidden), head) }))
		var loss torch.Value
		if batch.Labels != nil {
			loss = f.Keep(f.Let(causalLMLoss(t, logits, batch)))
		}
		out := Output{Loss: loss, Logits: f.Keep(logits), Cache: o.rest}
		f.End()
		return out
	}}
}

// allAtOnce is x itself, or another view of it.
func allAtOnce(t *torch.Torch, x *torch.Var) torch.Value { return t.Alias(x) }

// allOfSlices is x[:, slice(0, None), :]. Python's indexing makes another view of
// all of it; PyTorch before 2.11 slices each dimension, so recordings of 2.6 and 2.8
// have it, and backward puts each slice's gradient into zeros.
func allOfSlices(t *torch.Torch, x *torch.Var) torch.Value {
	if !t.Version.Before(2, 11) {
		return t.Alias(x)
	}
	out := t.Slice(x, 0, 0, x.Tensor().Dim(0))
	for d := 1; d < 3; d++ {
		out = t.Slice(out, d, 0, x.Tensor().Dim(d))
	}
	return out
}
