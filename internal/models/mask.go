package models

import (
	"memorymark/internal/torch"
)

// This file is transformers/masking_utils.py: how a model turns the mask of
// padding that it is called with into what attention takes.

// padding is the mask of a batch, and what is in it. All-ones masks are
// noticed and dropped.
type padding struct {
	mask *torch.Tensor // [batch, length], nil for none
	ones bool
}

// bidirectionalMask is create_bidirectional_mask: nothing if no position is
// masked, else a bool [batch, 1, length, length] for sdpa or a float of the
// embeddings' type for eager attention.
func bidirectionalMask(t *torch.Torch, p padding, embeddings *torch.Var, eager bool) torch.Value {
	everywhere := func(query, _ *torch.Var) torch.Value { return t.Compare(query) } // q_idx >= 0
	return maskOf(t, p, everywhere, true, embeddings, eager)
}

// maskOf makes a mask of a function. One that masks nothing is skipped if it may
// be (_ignore_bidirectional_mask_sdpa).
func maskOf(t *torch.Torch, p padding, look maskFunction, maySkip bool, embeddings *torch.Var, eager bool) torch.Value {
	f := t.Enter()
	var mask *torch.Var
	if p.mask != nil {
		mask = f.Let(t.To(torch.Borrow(p.mask), torch.Bool))
		t.Drop(t.All(mask)) // if padding_mask.all()
	}
	if maySkip && (p.mask == nil || p.ones) {
		f.End()
		return torch.Value{}
	}
	result := t.Enter()
	out := result.Let(sdpaMask(t, embeddings.Tensor().Dim(0), embeddings.Tensor().Dim(1), look, mask))
	if eager {
		zero := t.Full(embeddings.Tensor().DType)
		out.Set(t.WhereScalar(out, zero))
	}
	kept := result.Keep(out)
	f.End()
	result.End()
	return kept
}

// maskFunction says which keys a query looks at, from their indices.
type maskFunction func(query, key *torch.Var) torch.Value

// sdpaMask is sdpa_mask: index tensors, a function of them, and the padding if
// there is one.
func sdpaMask(t *torch.Torch, batch, length int64, look maskFunction, padding *torch.Var) torch.Value {
	f := t.Enter()
	batches := f.Let(t.Arange(batch))
	f.Let(t.Arange(1))                             // of heads
	queries := f.Let(t.Integers(t.Arange(length))) // arange + q_offset
	keys := f.Let(t.Integers(t.Arange(length)))
	g := t.Enter()
	query, key := g.Let(t.View(queries, 1, 1, length, 1)), g.Let(t.View(keys, 1, 1, 1, length))
	mask := g.Let(torch.Value{})
	if padding == nil {
		mask.Set(look(query, key))
	} else {
		row := g.Let(t.View(batches, batch, 1, 1, 1))
		inside := func(_, key *torch.Var) torch.Value { return t.Index(padding, row, key) }
		mask.Set(allOf(t, look, inside)(query, key))
	}
	out := g.Return(t.Expand(mask, batch, -1, length, length))
	f.End()
	return out
}

// allOf is and_masks, which starts from a True.
func allOf(t *torch.Torch, functions ...maskFunction) maskFunction {
	return func(query, key *torch.Var) torch.Value {
		f := t.Enter()
		result := f.Let(t.Full(torch.Bool))
		for _, look := range functions {
			result.Set(t.Compare(result, look(query, key)))
		}
		return f.Return(result)
	}
}
