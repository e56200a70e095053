package torch

import "slices"

// padLast is at::pad of the end of the last dimension with a constant: a copy
// in larger rows (constant_pad_nd, aten/src/ATen/native/PadNd.cpp). Its
// backward pads the gradient by a negative number, which copies what is left.
func (t *Torch) padLast(x *Tensor, n int64) *Tensor {
	shape := slices.Clone(x.Shape)
	shape[len(shape)-1] += n
	out := t.empty(x.DType, shape...)
	if node := t.record("ConstantPadNd", x); node != nil {
		old := x.Shape
		node.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, old...) }
		node.setOutputs(out)
	}
	return out
}

// Pad is torch.nn.functional.pad(x, (0, n)).
func (t *Torch) Pad(x X, n int64) Value {
	out := t.padLast(read(x), n)
	t.done(x)
	return Value{out}
}
