package torch

import "memorymark/internal/steptime"

// This file holds arithmetic on elements: what a * b, x ** 2 and the like
// allocate, save and give back (formulas: tools/autograd/derivatives.yaml).

// Mul is a * b. Each operand is saved if the other needs a gradient. Saving
// comes before the product is allocated: a checkpointed block that ends with it
// does not compute it again. The gradient of other comes before that of self.
func (t *Torch) Mul(a, b X) Value {
	x, y := read(a), read(b)
	n := t.record("Mul", x, y)
	if n != nil {
		var self, other *Tensor
		if n.wants(0) {
			other = t.save(n, y)
		}
		if n.wants(1) {
			self = t.save(n, x)
		}
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(1) {
				out[1] = t.pointwise(resultType(g[0], self), g[0], self)
			}
			if n.wants(0) {
				out[0] = t.pointwise(resultType(g[0], other), g[0], other)
			}
			return out
		}
	}
	out := t.pointwise(resultType(x, y), x, y)
	n.setOutputs(out)
	t.done(a, b)
	return Value{out}
}

// resultType returns the type of a result: a tensor without dimensions counts
// only if the other is of a lower kind (at::result_type).
func resultType(x, y *Tensor) DType {
	switch {
	case len(x.Shape) == 0 && len(y.Shape) > 0 && y.DType.IsFloat():
		return y.DType
	case len(y.Shape) == 0 && len(x.Shape) > 0 && x.DType.IsFloat():
		return x.DType
	default:
		return promote(x.DType, y.DType)
	}
}

// Div is a / b for a divisor that needs no gradient. It saves the divisor.
func (t *Torch) Div(a, b X) Value {
	x, y := read(a), read(b)
	out := t.pointwise(resultType(x, y), x, y)
	if n := t.record("Div", x); n != nil {
		other := t.save(n, y)
		n.gradient = func(g *Tensor) *Tensor { return t.pointwise(resultType(g, other), g, other) }
		n.setOutputs(out)
	}
	t.done(a, b)
	return Value{out}
}

// DivInPlace is a /= b. It saves both, a as a copy of its old value. The gradient
// of b, -grad * ((a / b) / b), comes before that of a (div_tensor_other_grad,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) DivInPlace(a *Var, b X) {
	x, y := a.tensor, read(b)
	if n := t.record("Div", x, y); n != nil {
		other := t.save(n, y)
		was := t.emptyLike(x, x.DType)
		self := t.save(n, was)
		t.release(was)
		n.backward = func(g []*Tensor) []*Tensor {
			quotient := t.pointwise(self.DType, self, other)
			twice := t.pointwise(quotient.DType, quotient, other)
			negative := t.pointwise(g[0].DType, g[0])
			ofOther := t.pointwise(negative.DType, negative, twice)
			t.release(negative, twice, quotient)
			return []*Tensor{t.pointwise(g[0].DType, g[0], other), ofOther}
		}
		t.setHistory(x, n)
	}
	t.done(b)
}

// MulInPlace is a *= b for a factor that needs no gradient. It saves the
// factor.
func (t *Torch) MulInPlace(a *Var, b X) {
	x, y := a.tensor, read(b)
	t.noteUpdate(x, y)
	if n := t.record("Mul", x); n != nil {
		other := t.save(n, y)
		n.gradient = func(g *Tensor) *Tensor { return t.pointwise(resultType(g, other), g, other) }
		t.setHistory(x, n)
	}
	t.done(b)
}

// Scale is x * c or x / c for a Python number; it saves nothing of size.
func (t *Torch) Scale(x X) Value {
	return t.unaryUnsaved("Mul", x, func(g *Tensor) *Tensor { return t.pointwise(g.DType, g) })
}

// ScaleInPlace is x *= c for a Python number: the tensor stays, and becomes the
// result of a new node.
func (t *Torch) ScaleInPlace(x *Var) {
	in := x.tensor
	t.kernel(steptime.Kernel, in.DType, float64(2*in.bytes()))
	if n := t.record("Mul", in); n != nil {
		n.gradient = func(g *Tensor) *Tensor { return t.pointwise(g.DType, g) }
		old := in.fn
		n.setOutputs(in)
		if old != nil {
			t.releaseNode(old)
		}
	}
}

// ShiftInPlace is x += c, or x -= y for a y that needs no gradient.
func (t *Torch) ShiftInPlace(x *Var) {
	if n := t.record("Add", x.tensor); n != nil {
		n.gradient = func(g *Tensor) *Tensor { return t.retain(g) }
		t.setHistory(x.tensor, n)
	}
}

// Shift is x + c or x - c for a Python number; its backward passes the gradient
// through.
func (t *Torch) Shift(x X) Value {
	return t.unaryUnsaved("Add", x, func(g *Tensor) *Tensor { return t.retain(g) })
}

// Neg is -x.
func (t *Torch) Neg(x X) Value {
	return t.unaryUnsaved("Neg", x, func(g *Tensor) *Tensor { return t.pointwise(g.DType, g) })
}

// unaryUnsaved makes an operator of one input that saves nothing: its backward
// needs only the gradient.
func (t *Torch) unaryUnsaved(name string, x X, backward func(grad *Tensor) *Tensor) Value {
	in := read(x)
	out := t.pointwise(in.DType, in)
	if n := t.record(name, in); n != nil {
		n.gradient = backward
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// Pow is x ** c for a Python number. Its backward is
// grad * (c * self ** (c - 1)): three tensors. Autocast computes it in
// float32.
func (t *Torch) Pow(x X) Value {
	in := t.upper(read(x))
	out := t.pointwise(in.DType, in)
	if n := t.record("Pow", in); n != nil {
		self := t.save(n, in)
		n.backward = func(g []*Tensor) []*Tensor {
			power := t.pointwise(self.DType, self)
			scaled := t.pointwise(power.DType, power)
			out := t.pointwise(g[0].DType, g[0], scaled)
			t.release(scaled, power)
			return []*Tensor{out}
		}
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// Rsqrt is torch.rsqrt(x). Its backward is -0.5 * grad * result ** 3. Autocast
// computes it in float32.
func (t *Torch) Rsqrt(x X) Value {
	in := t.upper(read(x))
	out := t.pointwise(in.DType, in)
	if n := t.record("Rsqrt", in); n != nil {
		result := t.save(n, out)
		n.backward = func(g []*Tensor) []*Tensor {
			half := t.pointwise(g[0].DType, g[0])
			cube := t.pointwise(result.DType, result)
			out := t.pointwise(half.DType, half, cube)
			t.release(cube, half)
			return []*Tensor{out}
		}
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// Clamp is x.clamp(min, max) by one number or both. It saves its input
// (clamp_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Clamp(x X, both bool) Value {
	in := read(x)
	out := t.pointwise(in.DType, in)
	if n := t.record("Clamp", in); n != nil {
		self := t.save(n, in)
		n.gradient = func(g *Tensor) *Tensor {
			zero := t.empty(g.DType)
			within := t.pointwise(Bool, self)
			var below *Tensor
			if both {
				below = t.pointwise(Bool, self)
			}
			out := t.pointwise(g.DType, within, g, zero)
			t.release(below, within, zero)
			return out
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// MeanLast is x.mean(-1, keepdim=True). Its backward divides the expanded
// gradient, which makes it a tensor of the full size (mean_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) MeanLast(x X) Value {
	out := t.meanLast(read(x))
	t.done(x)
	return Value{out}
}

func (t *Torch) meanLast(in *Tensor) *Tensor {
	out := t.sum(in, []int{-1}, true, in.DType)
	if n := t.record("Mean", in); n != nil {
		shape := in.Shape
		n.backward = func(g []*Tensor) []*Tensor {
			wide := t.expand(g[0], shape...)
			out := t.pointwise(wide.DType, wide)
			t.release(wide)
			return []*Tensor{out}
		}
		n.setOutputs(out)
	}
	return out
}

// Divide is a / b for a divisor that needs no gradient. It saves the divisor.
func (t *Torch) Divide(a, b X) Value {
	x, y := read(a), read(b)
	n := t.record("Div", x, y)
	if n != nil {
		divisor := t.save(n, y)
		n.backward = func(g []*Tensor) []*Tensor {
			return []*Tensor{t.pointwise(resultType(g[0], divisor), g[0], divisor), nil}
		}
	}
	out := t.pointwise(resultType(x, y), x, y)
	n.setOutputs(out)
	t.done(a, b)
	return Value{out}
}
