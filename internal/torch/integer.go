package torch

// This file holds operators on positions and masks: they compute elements
// from elements, need no gradient, and save nothing.

// Arange is torch.arange(n) in int64.
func (t *Torch) Arange(n int64) Value { return Value{t.empty(Int64, n)} }

// Full is torch.zeros, ones or full of a shape.
func (t *Torch) Full(dtype DType, shape ...int64) Value { return Value{t.empty(dtype, shape...)} }

// Bincount is torch.bincount(x, minlength=bins) of numbers below bins, which it
// checks first (aten/src/ATen/native/cuda/SummaryOps.cu, _bincount_cuda_template).
func (t *Torch) Bincount(x X, bins int64) Value {
	t.Drop(t.MaxOf(Borrow(read(x)))) // min
	t.Drop(t.MaxOf(Borrow(read(x))))
	out := t.Full(Int64, bins)
	t.done(x)
	return out
}

// FullLike is torch.zeros_like or full_like.
func (t *Torch) FullLike(x X) Value {
	in := read(x)
	out := t.emptyLike(in, in.DType)
	t.done(x)
	return Value{out}
}

// Compare is a comparison, of tensors or of a tensor with a number.
func (t *Torch) Compare(operands ...X) Value { return t.elements(Bool, operands...) }

// Integers is arithmetic on int64 tensors, or of one with a number.
func (t *Torch) Integers(operands ...X) Value { return t.elements(Int64, operands...) }

// Floats is arithmetic on float32 tensors that need no gradient, or of one
// with a number.
func (t *Torch) Floats(operands ...X) Value { return t.elements(Float32, operands...) }

// FloatsOf is Floats in another type.
func (t *Torch) FloatsOf(dtype DType, operands ...X) Value { return t.elements(dtype, operands...) }

func (t *Torch) elements(dtype DType, operands ...X) Value {
	tensors := make([]*Tensor, len(operands))
	for i, x := range operands {
		tensors[i] = read(x)
	}
	out := t.pointwise(dtype, tensors...)
	t.done(operands...)
	return Value{out}
}

// Clone is x.clone(): a dense copy in the order of x's dimensions.
func (t *Torch) Clone(x X) Value {
	in := read(x)
	out := t.emptyLike(in, in.DType)
	t.done(x)
	return Value{out}
}
