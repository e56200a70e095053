package torch

import "slices"

// Cat is torch.cat of tensors along a dimension: a contiguous copy. Its
// backward gives views of the gradient (cat_tensors_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Cat(dim int, parts ...X) Value {
	tensors := make([]*Tensor, len(parts))
	for i, p := range parts {
		tensors[i] = read(p)
	}
	out := t.cat(dim, tensors)
	t.done(parts...)
	return Value{out}
}

func (t *Torch) cat(dim int, parts []*Tensor) *Tensor {
	first := parts[0]
	dim = (dim + len(first.Shape)) % len(first.Shape)
	shape := slices.Clone(first.Shape)
	dtype := first.DType
	sizes := make([]int64, len(parts))
	shape[dim] = 0
	for i, x := range parts {
		sizes[i] = x.Shape[dim]
		shape[dim] += x.Shape[dim]
		dtype = promote(dtype, x.DType)
	}
	out := t.empty(dtype, shape...)
	if n := t.record("Cat", parts...); n != nil {
		n.backward = func(g []*Tensor) []*Tensor {
			out := make([]*Tensor, len(sizes))
			for i, size := range sizes {
				if !n.wants(i) {
					continue
				}
				part := slices.Clone(g[0].Shape)
				part[dim] = size
				out[i] = t.alias(g[0], part, g[0].stride)
			}
			return out
		}
		n.made(out)
	}
	return out
}
