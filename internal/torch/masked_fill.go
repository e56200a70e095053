package torch

// MaskedFill is x.masked_fill(mask, number): a copy. It saves the mask, and its
// backward fills a copy of the gradient.
func (t *Torch) MaskedFill(x, mask X) Value {
	in := read(x)
	n := t.maskedFill(in, read(mask))
	out := t.empty(in.DType, in.Shape...)
	n.setOutputs(out)
	t.done(x, mask)
	return Value{out}
}

// MaskedFillInPlace is x.masked_fill_(mask, number): the tensor stays, and becomes
// the result of a new node.
func (t *Torch) MaskedFillInPlace(x *Var, mask X) {
	if n := t.maskedFill(x.tensor, read(mask)); n != nil {
		t.setHistory(x.tensor, n)
	}
	t.done(mask)
}

func (t *Torch) maskedFill(in, mask *Tensor) *node {
	n := t.record("MaskedFill", in)
	if n != nil {
		t.save(n, mask)
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, g.Shape...) }
	}
	return n
}
