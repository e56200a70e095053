package torch

import "slices"

// CopyInto is x[..., from:to].copy_(y) of the last dimension: the tensor stays, and
// becomes the result of a new node. Its backward copies the gradient, takes the slice out
// of it for y, and puts zeros there for what x was before
// (torch/csrc/autograd/functions/tensor.cpp, CopySlices::apply, CopyBackwards::apply).
func (t *Torch) CopyInto(x *Var, from, to int64, y X) {
	base, source := x.tensor, read(y)
	if n := t.record("CopySlices", base, source); n != nil {
		dtype := source.DType
		whole, stride := base.Shape, base.stride
		part := slices.Clone(whole)
		part[len(part)-1] = to - from
		n.backward = func(g []*Tensor) []*Tensor {
			rest := t.emptyStrided(g[0].DType, whole, stride)
			slice := t.empty(g[0].DType, part...)
			var zeros *Tensor
			if n.wants(0) {
				zeros = t.empty(g[0].DType, part...)
			}
			switch {
			case !n.wants(1):
				slice = t.replaced(slice, nil)
			case dtype != slice.DType:
				slice = t.replaced(slice, t.emptyLike(slice, dtype))
			}
			t.release(zeros)
			if !n.wants(0) {
				t.release(rest)
				rest = nil
			}
			return []*Tensor{rest, slice}
		}
		t.remade(base, n)
	}
	t.done(y)
}
