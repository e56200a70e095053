package torch

import "slices"

// Split is x.split(size, dim): views of parts, in one node. Its backward joins
// the gradients, with zeros for a part that has none (split_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Split(x X, size int64, dim int) []Value {
	sizes := make([]int64, read(x).Dim(dim)/size)
	for i := range sizes {
		sizes[i] = size
	}
	return t.SplitSizes(x, dim, sizes...)
}

// SplitSizes is x.split(sizes, dim), likewise.
func (t *Torch) SplitSizes(x X, dim int, sizes ...int64) []Value {
	in := read(x)
	dim = (dim + len(in.Shape)) % len(in.Shape)
	parts := make([]*Tensor, len(sizes))
	for i, size := range sizes {
		shape := slices.Clone(in.Shape)
		shape[dim] = size
		parts[i] = t.alias(in, shape, in.stride)
	}
	if n := t.record("Split", in); n != nil {
		dtype := in.DType
		n.backward = func(g []*Tensor) []*Tensor {
			full := make([]*Tensor, len(parts))
			for i := range full {
				if g[i] != nil {
					full[i] = t.retain(g[i])
				} else {
					full[i] = t.empty(dtype, parts[i].Shape...)
				}
			}
			out := t.cat(dim, full)
			t.release(full...)
			return []*Tensor{out}
		}
		n.setOutputs(parts...)
	}
	t.done(x)
	values := make([]Value, len(parts))
	for i, p := range parts {
		values[i] = Value{p}
	}
	return values
}

// Unbind is x.unbind(dim): a view of each element, in one node. Its backward
// stacks the gradients (unbind_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Unbind(x X, dim int) []Value {
	in := read(x)
	dim = (dim + len(in.Shape)) % len(in.Shape)
	without := func(list []int64) []int64 { return slices.Delete(slices.Clone(list), dim, dim+1) }
	parts := make([]*Tensor, in.Shape[dim])
	for i := range parts {
		parts[i] = t.alias(in, without(in.Shape), without(in.stride))
	}
	if n := t.record("Unbind", in); n != nil {
		shape, dtype := in.Shape, in.DType
		n.backward = func([]*Tensor) []*Tensor { return []*Tensor{t.empty(dtype, shape...)} }
		n.setOutputs(parts...)
	}
	t.done(x)
	values := make([]Value, len(parts))
	for i, p := range parts {
		values[i] = Value{p}
	}
	return values
}
