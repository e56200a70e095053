package models

import "memorymark/internal/torch"

// This file is transformers/masking_utils.py as transformers 4.57 has it: masks
// are made by torch.vmap, and positions are looked through for packed sequences
// without asking whether there are any, so that a model without a cache and
// without a mask is given one.

// mapsMasks reports whether masks are made so.
func (v Versions) mapsMasks() bool { return v.Transformers.Before(5, 0) }

// positionsOf are the positions of tokens, as a row. Transformers 5 adds how many were
// seen before.
func positionsOf(t *torch.Torch, length int64, v Versions) torch.Value {
	positions := t.Arange(length)
	if !v.Transformers.Before(5, 0) {
		positions = t.Integers(positions)
	}
	return t.Unsqueeze(positions, 0)
}

// makeMapped returns the mask, nothing if the kernel's own causal masking will
// do.
func (c causalMask) makeMapped(t *torch.Torch, embeds, positions *torch.Var, given *torch.Tensor) torch.Value {
	f := t.Enter()
	b, s := embeds.Tensor().Dim(0), embeds.Tensor().Dim(1)
	var attention, packed *torch.Var
	if given != nil {
		attention = f.Let(t.To(torch.Borrow(given), torch.Bool))
	} else if !c.cached {
		packed = f.Let(packedSequences(t, positions, b))
	}
	if !c.eager && packed == nil && (c.window == 0 || s < c.window) {
		if attention != nil {
			t.Drop(t.All(attention)) // padding_mask.all()
		}
		if attention == nil || !c.padded {
			f.End()
			return torch.Value{}
		}
	}
	g := t.Enter()
	mask := g.Let(c.map4(t, attention, packed, positions, b, s))
	if c.eager {
		zero := t.Full(embeds.Tensor().DType)
		mask.Set(t.WhereScalar(mask, zero))
	}
	return f.Return(g.Return(mask))
}

// packedSequences is find_packed_sequence_indices.
func packedSequences(t *torch.Torch, positions *torch.Var, batch int64) torch.Value {
	f := t.Enter()
	return f.Return(packedIn(t, f, positions, batch))
}

// map4 is sdpa_mask: _vmap_for_bhqkv of a function of one query and one key. Each
// operator of it computes all of them.
func (c causalMask) map4(t *torch.Torch, attention, packed, positions *torch.Var, batch, length int64) torch.Value {
	f := t.Enter()
	keys := f.Let(t.Arange(length))
	batches := f.Let(t.Arange(batch))
	f.Let(t.Arange(1)) // of heads
	g := t.Enter()
	query := g.Let(t.View(positions, 1, 1, length, 1))
	key := g.Let(t.View(keys, 1, 1, 1, length))
	row := g.Let(t.View(batches, batch, 1, 1, 1))
	one := func() torch.Value { return t.Full(torch.Bool, 1, 1, length, 1) } // q_idx.new_ones
	look := func(query, key *torch.Var) torch.Value { return t.Compare(key, query) }
	if c.window > 0 {
		window := func(query, key *torch.Var) torch.Value { return t.Compare(key, t.Integers(query)) }
		look = allOfFrom(t, one, window, look)
	}
	if packed != nil {
		same := func(query, key *torch.Var) torch.Value { // packed[b, q] == packed[b, kv]
			return t.Compare(t.Index(packed, row, query), t.Index(packed, row, key))
		}
		look = allOfFrom(t, one, look, same)
	}
	if attention != nil {
		inside := func(_, key *torch.Var) torch.Value { return t.Index(attention, row, key) }
		look = allOfFrom(t, one, look, inside)
	}
	mask := g.Let(look(query, key))
	out := g.Return(t.Expand(mask, batch, -1, length, length))
	f.End()
	return out
}
