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

// build evaluates the mask function for all pairs of tokens.
func (c causalMask) build(t *torch.Torch, padding *torch.Var, batch, length int64) torch.Value {
	f := t.Enter()
	inBatch := f.Let(t.Arange(batch))
	f.Let(t.Arange(1)) // heads
	query := f.Let(t.Integers(t.Arange(length)))
	key := f.Let(t.Integers(t.Arange(length)))
	i := t.View(query, 1, 1, length, 1)
	j := t.View(key, 1, 1, 1, length)
	mask := f.Let(torch.Value{})
	g := t.Enter(i, j)
	causal := func() torch.Value {
		if c.window > 0 {
			return c.windowed(t, i, j)
		}
		return t.Compare(j.Borrow(), i.Borrow())
	}
	if padding == nil {
		mask.Set(causal())
	} else {
		mask.Set(allOf(t, causal, func() torch.Value {
			return t.Index(padding, t.View(inBatch, batch, 1, 1, 1), j.Borrow())
		}))
	}
	g.End()
	mask.Set(t.Expand(mask, batch, -1, length, length))
	return f.Return(mask)
}

// windowed is sliding_window_causal_mask_function.
func (c causalMask) windowed(t *torch.Torch, i, j torch.Value) torch.Value {
	return allOf(t,
		func() torch.Value { return t.Compare(j.Borrow(), t.Integers(i.Borrow())) },
		func() torch.Value { return t.Compare(j.Borrow(), i.Borrow()) })
}

// allOf is and_masks.
func allOf(t *torch.Torch, masks ...func() torch.Value) torch.Value {
	f := t.Enter()
	result := f.Let(t.Full(torch.Bool))
	for _, mask := range masks {
		result.Set(t.Compare(result, mask()))
	}
	return f.Return(result)
}
