package torch

// WhereScalar is torch.where(condition, x, number): the number becomes a
// tensor of one element on the device for the call
// (aten/src/ATen/native/TensorCompare.cpp, where with a Scalar).
func (t *Torch) WhereScalar(condition, x X) Value {
	number := Value{t.empty(read(x).DType)}
	return t.Where(condition, x, number)
}

// Where is torch.where(condition, x, y) for a y that needs no gradient.
func (t *Torch) Where(condition, x, y X) Value {
	c, in := read(condition), read(x)
	out := t.pointwise(in.DType, c, in, read(y))
	if n := t.record("Where", in); n != nil {
		c := t.save(n, c)
		n.gradient = func(g *Tensor) *Tensor { return t.whereGrad(c, g) }
		n.setOutputs(out)
	}
	t.done(y, condition, x)
	return Value{out}
}

// whereGrad is where(condition, grad, 0).
func (t *Torch) whereGrad(condition, grad *Tensor) *Tensor {
	zero := t.empty(grad.DType)
	out := t.pointwise(grad.DType, condition, grad, zero)
	t.release(zero)
	return out
}
