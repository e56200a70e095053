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
