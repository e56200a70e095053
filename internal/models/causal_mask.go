package models

import "memorymark/internal/torch"

// causalMask makes the attention mask of a decoder
// (transformers/masking_utils.py, create_causal_mask and
// create_sliding_window_causal_mask).
type causalMask struct {
	window int64 // of sliding attention, 0 for none
	eager  bool  // a float to add to the scores, not a bool
	padded bool  // the mask that the model is given has zeros
	cached bool  // keys and values are cached
}

// make returns the mask, nothing if the kernel's own causal masking will do.
func (c causalMask) make(t *torch.Torch, embeds, positions *torch.Var, given *torch.Tensor) torch.Value {
	f := t.Enter()
	// _preprocess_mask_arguments
	var attention *torch.Var
	if given != nil {
		attention = f.Let(t.To(torch.Borrow(given), torch.Bool))
	} else if !c.cached {
		findPackedSequences(t, positions, embeds.Tensor().Dim(0))
	}
	b, s := embeds.Tensor().Dim(0), embeds.Tensor().Dim(1)
	if !c.eager {
		return f.Return(c.sdpa(t, attention, b, s))
	}
	g := t.Enter()
	mask := g.Let(c.build(t, attention, b, s))
	zero := t.Full(embeds.Tensor().DType)
	mask.Set(t.WhereScalar(mask, zero))
	return f.Return(g.Return(mask))
}

// findPackedSequences looks for sequences packed behind each other, and finds
// none (find_packed_sequence_indices).
func findPackedSequences(t *torch.Torch, positions *torch.Var, batch int64) {
	f := t.Enter()
	ids := f.Let(positions)
	if ids.Tensor().Dim(0) != batch {
		ids.Set(t.Expand(ids, batch, -1))
	}
	first := f.Let(t.Integers(t.Slice(ids, 1, 0, 1)))
	joined := t.Cat(-1, first, ids) // torch.diff(position_ids, prepend=first)
	n := ids.Tensor().Dim(1)
	diff := f.Let(t.Integers(t.Slice(joined.Borrow(), 1, 1, n+1), t.Slice(joined.Borrow(), 1, 0, n)))
	t.Drop(joined)
	packed := f.Let(t.CumsumLast(t.Compare(diff)))
	t.Drop(t.All(t.Compare(t.Select(packed, 1)))) // (packed[:, -1] == 0).all()
	f.End()
}

// sdpa is sdpa_mask, which may skip the mask (_ignore_causal_mask_sdpa).
func (c causalMask) sdpa(t *torch.Torch, padding *torch.Var, batch, length int64) torch.Value {
	if c.window > 0 && length >= c.window {
		return c.build(t, padding, batch, length)
	}
	if padding == nil {
		return torch.Value{}
	}
	allOnes := func() { t.Drop(t.Compare(t.SumBools(padding))) } // fast_all(padding_mask)
	allOnes()
	if !c.padded {
		return torch.Value{}
	}
	allOnes() // of the first tokens, which are all there are
	return c.build(t, padding, batch, length)
}

// build is sdpa_mask with causal_mask_function or
// sliding_window_causal_mask_function.
func (c causalMask) build(t *torch.Torch, padding *torch.Var, batch, length int64) torch.Value {
	look := func(query, key *torch.Var) torch.Value { return t.Compare(key, query) } // kv_idx <= q_idx
	if c.window > 0 {
		window := func(query, key *torch.Var) torch.Value { return t.Compare(key, t.Integers(query)) } // kv_idx > q_idx - window
		look = allOf(t, window, look)
	}
	return sdpaMask(t, batch, length, look, padding)
}
