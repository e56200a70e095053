package torch

// This file holds operators of two or three tensors, all of which may need gradients
// (tools/autograd/derivatives.yaml).

// Extreme is torch.maximum or torch.minimum. Where both are equal, each gets half of the
// gradient: grad / 2 where they are, else the gradient masked by which is larger.
func (t *Torch) Extreme(a, b X) Value {
	x, y := read(a), read(b)
	out := t.pointwise(resultType(x, y), x, y)
	if n := t.record("Maximum", x, y); n != nil {
		self, other := t.save(n, y), t.save(n, x)
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			for _, i := range []int{1, 0} {
				if n.wants(i) {
					out[i] = t.halved(g[0], self, other)
				}
			}
			return out
		}
		n.setOutputs(out)
	}
	t.done(a, b)
	return Value{out}
}

// halved is at::where(self == other, grad / 2, grad).masked_fill_(self < other, 0).
func (t *Torch) halved(g, self, other *Tensor) *Tensor {
	equal := t.pointwise(Bool, self, other)
	half := t.pointwise(g.DType, g)
	out := t.pointwise(g.DType, equal, half, g)
	less := t.pointwise(Bool, self, other)
	t.release(less, half, equal)
	return out
}

// WhereGrad is torch.where(condition, x, y).
func (t *Torch) WhereGrad(condition, a, b X) Value {
	c, x, y := read(condition), read(a), read(b)
	out := t.pointwise(resultType(x, y), c, x, y)
	if n := t.record("Where", nil, x, y); n != nil {
		c := t.save(n, c)
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(3)
			for i := 1; i < 3; i++ {
				if n.wants(i) {
					out[i] = t.whereGrad(c, g[0])
				}
			}
			return out
		}
		n.setOutputs(out)
	}
	t.done(b, condition, a)
	return Value{out}
}

// PowTensor is x ** y of two tensors. The gradient of x is grad * (y * x ** (y - 1)) where
// y is not 0; that of y is grad * (result * log x) where x is not 0 (pow_backward_self,
// pow_backward_exponent, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) PowTensor(a, b X) Value {
	x, y := t.upper(read(a)), t.upper(read(b))
	out := t.pointwise(resultType(x, y), x, y)
	if n := t.record("Pow", x, y); n != nil {
		exponent, self := t.save(n, y), t.save(n, x)
		result := t.save(n, out)
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(0) {
				less := t.pointwise(exponent.DType, exponent)
				power := t.pointwise(result.DType, self, less)
				factor := t.pointwise(result.DType, exponent, power)
				product := t.pointwise(result.DType, g[0], factor)
				zero, is := t.empty(product.DType), t.pointwise(Bool, exponent)
				out[0] = t.pointwise(product.DType, is, zero, product)
				t.release(is, zero, product, factor, power, less)
			}
			if n.wants(1) {
				is := t.pointwise(Bool, self, exponent)
				zero := t.empty(result.DType)
				log := t.pointwise(self.DType, self)
				product := t.pointwise(result.DType, result, log)
				chosen := t.pointwise(result.DType, is, zero, product)
				out[1] = t.pointwise(result.DType, g[0], chosen)
				t.release(chosen, product, log, zero, is)
			}
			return out
		}
		n.setOutputs(out)
	}
	t.release(y, x)
	t.done(a, b)
	return Value{out}
}

// Reciprocal is number / x: x.reciprocal() * number, each with its node.
func (t *Torch) Reciprocal(x X) Value { return t.Scale(t.Unary("Reciprocal", x)) }

// ExpOf is number ** x. It saves x and its result; the gradient is grad * (result * log).
func (t *Torch) ExpOf(x X) Value {
	in := t.upper(read(x))
	out := t.pointwise(in.DType, in)
	if n := t.record("Pow", in); n != nil {
		result := t.save(n, out)
		n.gradient = func(g *Tensor) *Tensor {
			product := t.pointwise(result.DType, result)
			grad := t.pointwise(g.DType, g, product)
			t.release(product)
			return grad
		}
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// AddProduct is baddbmm(input, a, b), a batched product that is added to its input, or
// addmm of matrices, whose input is no bias. The gradients of what is scaled by a number other
// than one are multiplied by it (maybe_multiply).
func (t *Torch) AddProduct(input, a, b X, scaledInput, scaledProduct bool) Value {
	right, left, add := t.lower(read(b)), t.lower(read(a)), t.lower(read(input))
	n := t.record("Baddbmm", left, right, add)
	if n != nil {
		var x, y *Tensor
		if n.wants(1) {
			x = t.save(n, left)
		}
		if n.wants(0) {
			y = t.save(n, right)
		}
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(3)
			if n.wants(0) {
				out[0] = t.multiplied(t.productGrad(g[0], y, true), scaledProduct)
			}
			if n.wants(1) {
				out[1] = t.multiplied(t.productGrad(g[0], x, false), scaledProduct)
			}
			if n.wants(2) {
				out[2] = t.multiplied(t.retain(g[0]), scaledInput)
			}
			return out
		}
	}
	var out *Tensor
	if len(left.Shape) == 2 {
		out = t.mm(left, right)
	} else {
		out = t.bmmPlain(left, right)
	}
	n.setOutputs(out)
	t.release(add, left, right)
	t.done(input, a, b)
	return Value{out}
}

// multiplied is maybe_multiply of a gradient that it takes over.
func (t *Torch) multiplied(grad *Tensor, by bool) *Tensor {
	if !by {
		return grad
	}
	return t.replace(grad, t.pointwise(grad.DType, grad))
}

// productGrad is grad · other.T, or other.T · grad.
func (t *Torch) productGrad(grad, other *Tensor, left bool) *Tensor {
	product, transpose := t.bmmPlain, t.transposeBatch
	if len(other.Shape) == 2 {
		product, transpose = t.mm, t.transposePlain
	}
	turned := transpose(other)
	defer t.release(turned)
	if left {
		return product(grad, turned)
	}
	return product(turned, grad)
}
