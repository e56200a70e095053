package models

import "memorymark/internal/torch"

// This file is what encoders do otherwise in transformers 4: they look for
// padding where no mask is given, and make a mask of ones then.

// isOf4 reports whether an encoder is one of transformers 4.
func (e *encoding) isOf4() bool { return e.versions.Transformers.Before(5, 0) }

// given4 is the mask that a model is called with, or ones.
func given4(t *torch.Torch, batch *Batch) torch.X {
	if batch.Mask != nil {
		return torch.Borrow(batch.Mask)
	}
	return t.Full(torch.Float32, batch.IDs.Dim(0), batch.IDs.Dim(1))
}

// sdpaMask4 is _prepare_4d_attention_mask_for_sdpa
// (transformers/modeling_attn_mask_utils.py): nothing if no position is masked.
func sdpaMask4(t *torch.Torch, given *torch.Var, batch *Batch, dtype torch.DType) torch.Value {
	t.Drop(t.All(t.Compare(given))) // torch.all(mask == 1)
	if !batch.Padded || batch.Mask == nil {
		return torch.Value{}
	}
	b, s := batch.IDs.Dim(0), batch.IDs.Dim(1)
	f := t.Enter()
	expanded := f.Let(t.To(t.Expand(t.View(given, b, 1, 1, s), b, 1, s, s), dtype))
	inverted := f.Let(t.Scale(expanded)) // 1.0 - expanded_mask
	masked := t.Compare(inverted)
	filled := t.Scale(inverted) // inverted_mask.masked_fill
	t.Drop(masked)
	return f.Return(filled)
}

// firstToken is x[:, 0], where PyTorch before 2.11 slices the batch first (see
// torch.Slice).
func firstToken(t *torch.Torch, x *torch.Var) torch.Value {
	if t.Version.Before(2, 11) {
		return t.Select(t.Slice(x, 0, 0, x.Tensor().Dim(0)), 1)
	}
	return t.Select(x, 1)
}
