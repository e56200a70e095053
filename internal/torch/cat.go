package torch

import "slices"

// Cat is torch.cat of tensors along a dimension: a contiguous copy in their
// common type. An empty vector before others counts for its type only. Its
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

// Stack is torch.stack of tensors of one shape and type. Its backward gives views of
// the gradient (stack_tensors_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Stack(dim int, parts ...X) Value {
	tensors := make([]*Tensor, len(parts))
	for i, p := range parts {
		tensors[i] = read(p)
	}
	first := tensors[0]
	dim = (dim + len(first.Shape) + 1) % (len(first.Shape) + 1)
	out := t.empty(first.DType, slices.Insert(slices.Clone(first.Shape), dim, int64(len(parts)))...)
	if n := t.record("Stack", tensors...); n != nil {
		n.backward = func(g []*Tensor) []*Tensor {
			out := make([]*Tensor, len(n.next))
			for i := range out {
				if n.wants(i) {
					out[i] = t.pick(g[0], dim)
				}
			}
			return out
		}
		n.setOutputs(out)
	}
	t.done(parts...)
	return Value{out}
}

func (t *Torch) cat(dim int, parts []*Tensor) *Tensor {
	last := parts[len(parts)-1]
	dim = (dim + len(last.Shape)) % len(last.Shape)
	shape := slices.Clone(last.Shape)
	shape[dim] = 0
	dtype := last.DType
	sizes := make([]int64, len(parts))
	for i, x := range parts {
		dtype = promote(dtype, x.DType)
		if len(x.Shape) == 1 && x.Shape[0] == 0 {
			continue
		}
		sizes[i] = x.Shape[dim]
		shape[dim] += x.Shape[dim]
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
		n.setOutputs(out)
	}
	return out
}
