package torch

import "slices"

// CopyInto is x[..., from:to].copy_(y) of the last dimension.
func (t *Torch) CopyInto(x *Var, from, to int64, y X) {
	part := slices.Clone(x.tensor.Shape)
	part[len(part)-1] = to - from
	t.SetPart(x, part, y)
}

// CopyWhole is x.copy_(y), which becomes the result of a new node (CopyBackwards).
func (t *Torch) CopyWhole(x *Var, y X) {
	to, source := x.tensor, read(y)
	if n := t.record("Copy", to, source); n != nil {
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(0) {
				out[0] = t.emptyLike(g[0], g[0].DType)
			}
			if n.wants(1) {
				out[1] = t.retain(g[0])
			}
			return out
		}
		t.setHistory(to, n)
	}
	t.done(y)
}

// SetPart changes a view of a tensor in place: copy_ of another one, or fill_ if there is
// none. The tensor stays, and becomes the result of a new node. Its backward copies the
// gradient, takes the part out of it for what was copied, and puts zeros there for what was
// there before (torch/csrc/autograd/functions/tensor.cpp, CopySlices::apply,
// CopyBackwards::apply).
func (t *Torch) SetPart(x *Var, part []int64, y X) {
	base, source := x.tensor, (*Tensor)(nil)
	if y != nil {
		source = read(y)
	}
	if n := t.record("CopySlices", base, source); n != nil {
		whole, stride := base.Shape, base.stride
		n.backward = func(g []*Tensor) []*Tensor {
			rest := t.emptyStrided(g[0].DType, whole, stride)
			slice := t.empty(g[0].DType, part...)
			var zeros *Tensor
			if n.wants(0) {
				zeros = t.empty(g[0].DType, part...)
			}
			switch {
			case !n.wants(1):
				slice = t.replace(slice, nil)
			case source.DType != slice.DType:
				slice = t.replace(slice, t.emptyLike(slice, source.DType))
			}
			t.release(zeros)
			if !n.wants(0) {
				t.release(rest)
				rest = nil
			}
			return []*Tensor{rest, slice}
		}
		t.setHistory(base, n)
	}
	if y != nil {
		t.done(y)
	}
}
