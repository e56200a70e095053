package torch

import "slices"

// This file holds what rotary positions as complex numbers need: pairs of
// float32 seen as one complex64, and back.

// ViewAsComplex is torch.view_as_complex(x): the last dimension, of two numbers,
// becomes one.
func (t *Torch) ViewAsComplex(x X) Value {
	out := t.viewAs("ViewAsComplex", read(x), asComplex, asReal)
	t.done(x)
	return Value{out}
}

// ViewAsReal is torch.view_as_real(x).
func (t *Torch) ViewAsReal(x X) Value {
	out := t.viewAs("ViewAsReal", read(x), asReal, asComplex)
	t.done(x)
	return Value{out}
}

// viewAs makes a view in the other type. Its backward makes the opposite view
// of a contiguous gradient (tools/autograd/derivatives.yaml).
func (t *Torch) viewAs(name string, in *Tensor, there, back func(*Tensor) (DType, []int64, []int64)) *Tensor {
	dtype, shape, stride := there(in)
	out := t.makeView(name, in, shape, stride, func(g *Tensor) *Tensor {
		dense := t.contiguousPlain(g)
		dtype, shape, stride := back(dense)
		view := t.alias(dense, shape, stride)
		view.DType = dtype
		t.release(dense)
		return view
	})
	out.DType = dtype
	return out
}

func asComplex(x *Tensor) (dtype DType, shape, stride []int64) {
	last := len(x.Shape) - 1
	stride = slices.Clone(x.stride[:last])
	for i := range stride {
		stride[i] /= 2
	}
	return Complex64, x.Shape[:last], stride
}

func asReal(x *Tensor) (dtype DType, shape, stride []int64) {
	stride = slices.Clone(x.stride)
	for i := range stride {
		stride[i] *= 2
	}
	return Float32, append(slices.Clone(x.Shape), 2), append(stride, 1)
}

// MulComplex is a * b of complex numbers. It saves b, which needs no gradient. Its
// backward multiplies by the conjugate of b, which is materialized for the call
// (aten/src/ATen/ConjugateFallback.cpp).
func (t *Torch) MulComplex(a, b X) Value {
	x, y := read(a), read(b)
	n := t.record("Mul", x)
	if n != nil {
		other := t.save(n, y)
		n.backward = func(g []*Tensor) []*Tensor {
			conjugate := t.emptyLike(other, Complex64)
			out := t.pointwise(Complex64, g[0], conjugate)
			t.release(conjugate)
			return []*Tensor{out}
		}
	}
	out := t.pointwise(Complex64, x, y)
	n.setOutputs(out)
	t.done(a, b)
	return Value{out}
}

// Complexes is arithmetic that makes complex numbers and needs no gradient.
func (t *Torch) Complexes(operands ...X) Value { return t.elements(Complex64, operands...) }
