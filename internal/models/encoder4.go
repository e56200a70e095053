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
	return expandMask(t, given, batch.IDs.Dim(0), batch.IDs.Dim(1), dtype)
}

// extendedMask4 is get_extended_attention_mask (transformers/modeling_utils.py), for
// eager attention.
func extendedMask4(t *torch.Torch, given torch.X, dtype torch.DType) torch.Value {
	f := t.Enter()
	return f.Return(invertedMask4(t, f.Let(given), dtype))
}

// invertedMask4 is (1.0 - mask[:, None, None, :]) * min, as invert_attention_mask
// makes it, too.
func invertedMask4(t *torch.Torch, given *torch.Var, dtype torch.DType) torch.Value {
	f := t.Enter()
	mask := f.Let(t.View(given, given.Tensor().Dim(0), 1, 1, given.Tensor().Dim(1)))
	mask.Set(t.To(mask, dtype))
	mask.Set(t.Scale(t.Scale(mask)))
	return f.Return(mask)
}

// forwardMasked4 is the rest of ElectraModel.forward
// (transformers/models/electra/modeling_electra.py), where the mask comes first.
func (m *bertModel) forwardMasked4(t *torch.Torch, f *torch.Frame, given *torch.Var, batch *Batch) trunkOutput {
	given.Set(given4(t, batch))
	mask := f.Let(extendedMask4(t, given, m.dtype))
	hidden := f.Let(m.embed(t, batch.IDs, m.train))
	hidden.Set(m.encode(t, m.layers, hidden, mask))
	out := trunkOutput{hidden: f.Keep(hidden)}
	f.End()
	return out
}

// eager4 is a self attention's forward function with eager attention of
// transformers 4, up to the context, and the weights if it returns them.
type eager4 func(t *torch.Torch, f *torch.Frame, hidden, mask *torch.Var, query, key, value *torch.Linear) (context *torch.Var, weights torch.Value)

// eagerBert4 is BertSelfAttention.forward, where scores and their softmax have names
// of their own. In transformers 4.51 queries have two.
func (e *encoding) eagerBert4(t *torch.Torch, f *torch.Frame, hidden, mask *torch.Var, query, key, value *torch.Linear) (*torch.Var, torch.Value) {
	first := f.Let(t.Linear(hidden, query))
	q := first
	if !e.versions.Transformers.Before(4, 57) {
		q.Set(e.split(t, q, hidden, query))
	}
	k := e.projected(t, f, hidden, key)
	v := e.projected(t, f, hidden, value)
	if e.versions.Transformers.Before(4, 57) {
		q = f.Let(e.split(t, first, hidden, query))
	}
	scores := f.Let(t.MatMul(q, t.Transpose(k, -1, -2)))
	scores.Set(t.Scale(scores))
	scores.Set(t.Add(scores, mask))
	return e.weigh4(t, f, scores, v)
}

// eagerDistilBert4 is DistilBERT's MultiHeadSelfAttention.forward, which divides
// queries, and fills scores by the mask that the model is given.
func (e *encoding) eagerDistilBert4(t *torch.Torch, f *torch.Frame, hidden, mask *torch.Var, query, key, value *torch.Linear) (*torch.Var, torch.Value) {
	q := e.projected(t, f, hidden, query)
	k := e.projected(t, f, hidden, key)
	v := e.projected(t, f, hidden, value)
	q.Set(t.Scale(q))
	scores := f.Let(t.MatMul(q, t.Transpose(k, 2, 3)))
	b, s := mask.Tensor().Dim(0), mask.Tensor().Dim(1)
	masked := f.Let(t.Expand(t.View(t.Compare(mask), b, 1, 1, s), scores.Tensor().Shape...))
	scores.Set(t.MaskedFill(scores, masked))
	return e.weigh4(t, f, scores, v)
}

// weigh4 is the softmax of scores, with dropout, times values.
func (e *encoding) weigh4(t *torch.Torch, f *torch.Frame, scores, v *torch.Var) (context *torch.Var, kept torch.Value) {
	weights := f.Let(t.Softmax(scores, torch.NoDType))
	weights.Set(t.Dropout(weights, e.attentionDropout, e.train))
	context = f.Let(t.MatMul(weights, v))
	context.Set(t.Contiguous(t.Transpose(context, 1, 2)))
	if e.returnsWeights {
		kept = f.Keep(weights)
	}
	return context, kept
}

// keepWeights has the encoder keep what a layer returned in addition to its output, in
// layer_outputs, until the next one has returned. Recomputed ones are not kept.
func (e *encoding) keepWeights(t *torch.Torch, f *torch.Frame, weights *torch.Var) {
	if e.returnsWeights && !t.RunsAgain() {
		e.weights = f.Keep(weights)
	}
}

// firstToken is x[:, 0], where PyTorch before 2.11 slices the batch first (see
// torch.Slice).
func firstToken(t *torch.Torch, x *torch.Var) torch.Value {
	if t.Version.Before(2, 11) {
		return t.Select(t.Slice(x, 0, 0, x.Tensor().Dim(0)), 1)
	}
	return t.Select(x, 1)
}

// firstTokenOnly is x[:, 0, :], which slices the rest, too.
func firstTokenOnly(t *torch.Torch, x *torch.Var) torch.Value {
	if t.Version.Before(2, 11) {
		return t.Slice(firstToken(t, x), 1, 0, x.Tensor().Dim(2))
	}
	return firstToken(t, x)
}
