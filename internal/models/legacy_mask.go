package models

import "memorymark/internal/torch"

// This file is transformers/modeling_attn_mask_utils.py, with which models of
// transformers 4.51 make their masks: floats to add to the scores, in the type
// of the embeddings.

// convertsMasks reports whether masks are made so.
func (v Versions) convertsMasks() bool { return v.Transformers.Before(4, 57) }

// legacyMask is a causal mask of a batch, before there was causalMask.
type legacyMask struct {
	window   int64 // of sliding attention, 0 for none
	padded   bool  // the mask that the model is given has zeros
	eager    bool  // is the attention
	triangle bool  // is made first
	always   bool  // is made, whatever the attention, and no query is let see everything
}

// ignored is _ignore_causal_mask_sdpa: the kernel's own causal masking will do.
func (c legacyMask) ignored(t *torch.Torch, given *torch.Tensor, length int64) bool {
	if c.window > 0 && length >= c.window {
		return false
	}
	if given != nil {
		t.Drop(t.All(t.Compare(torch.Borrow(given)))) // torch.all(attention_mask == 1)
	}
	return given == nil || !c.padded
}

// forSDPA is _prepare_4d_causal_attention_mask_for_sdpa without a window.
func (c legacyMask) forSDPA(t *torch.Torch, embeds *torch.Var, given *torch.Tensor) torch.Value {
	if c.ignored(t, given, embeds.Tensor().Dim(1)) {
		return torch.Value{}
	}
	f := t.Enter()
	mask := f.Let(to4D(t, given, embeds.Tensor().DType))
	mask.Set(unmaskUnattended(t, mask))
	return f.Return(mask)
}

// to4D is AttentionMaskConverter.to_4d: the causal mask, filled where tokens are
// padding.
func to4D(t *torch.Torch, given *torch.Tensor, dtype torch.DType) torch.Value {
	f := t.Enter()
	causal := f.Let(makeCausalMask(t, given.Dim(0), given.Dim(1), dtype))
	expanded := f.Let(expandMask(t, torch.Borrow(given), given.Dim(0), given.Dim(1), dtype))
	expanded.Set(t.MaskedFill(causal, t.To(expanded, torch.Bool)))
	return f.Return(expanded)
}

// makeCausalMask is _make_causal_mask.
func makeCausalMask(t *torch.Torch, batch, length int64, dtype torch.DType) torch.Value {
	f := t.Enter()
	mask := f.Let(t.Full(torch.Float32, length, length))
	positions := f.Let(t.Arange(length))
	t.MaskedFillInPlace(mask, t.Compare(positions, t.View(t.Integers(positions), length, 1)))
	mask.Set(t.To(mask, dtype))
	return f.Return(t.Expand(t.View(mask, 1, 1, length, length), batch, 1, length, length))
}

// expandMask is _expand_mask: a row for every query, with the least number where
// a key is padding.
func expandMask(t *torch.Torch, given torch.X, batch, length int64, dtype torch.DType) torch.Value {
	f := t.Enter()
	expanded := f.Let(t.To(t.Expand(t.View(given, batch, 1, 1, length), batch, 1, length, length), dtype))
	inverted := f.Let(t.Scale(expanded)) // 1.0 - expanded_mask
	return f.Return(t.MaskedFill(inverted, t.To(inverted, torch.Bool)))
}

// unmaskUnattended is _unmask_unattended, which lets a query see everything that
// could see nothing.
func unmaskUnattended(t *torch.Torch, mask *torch.Var) torch.Value {
	return t.Mul(mask, t.Compare(t.AllLast(t.Compare(mask))))
}

// update is _update_causal_mask of Llama's line
// (transformers/models/llama/modeling_llama.py, and gemma2, qwen2). Llama and Gemma
// make a triangle first; others know a window, and name the positions to look at.
func (c legacyMask) update(t *torch.Torch, embeds, positions *torch.Var, given *torch.Tensor) torch.Value {
	b, length, dtype := embeds.Tensor().Dim(0), embeds.Tensor().Dim(1), embeds.Tensor().DType
	if !c.eager && !c.always && c.ignored(t, given, length) {
		return torch.Value{}
	}
	width := length + 1
	if given != nil || c.always {
		width = length
	}
	f := t.Enter()
	mask := f.Let(c.withPositions(t, positions, given, b, length, width, dtype))
	if !c.eager && !c.always && given != nil {
		mask.Set(unmaskUnattended(t, mask))
	}
	return f.Return(mask)
}

// withPositions is _prepare_4d_causal_attention_mask_with_cache_position.
func (c legacyMask) withPositions(t *torch.Torch, positions *torch.Var, given *torch.Tensor, batch, length, width int64, dtype torch.DType) torch.Value {
	f := t.Enter()
	mask := f.Let(t.Full(dtype, length, width))
	column := func() torch.Value { return t.View(positions, length, 1) }
	if c.triangle {
		mask.Set(t.Scale(mask)) // triu
		t.MulInPlace(mask, t.Compare(t.Arange(width), column()))
	} else {
		later := f.Let(t.Compare(t.Arange(width), column()))
		if c.window > 0 {
			f.Let(t.Compare(t.Arange(width), t.Integers(column())))
		}
		t.MulInPlace(mask, later)
	}
	mask.Set(t.Expand(t.View(mask, 1, 1, length, width), batch, 1, -1, -1))
	if given != nil {
		mask.Set(t.Clone(mask))
		row := t.View(torch.Borrow(given), batch, 1, 1, length)
		if given.DType == torch.Float32 {
			dtype = torch.Float32
		}
		padding := f.Let(t.FloatsOf(dtype, mask, row))
		padding.Set(t.Compare(padding))
		t.Drop(t.MaskedFill(mask, padding))
	}
	return f.Return(mask)
}
