package torch

import "slices"

// Permute is x.permute(dims).
func (t *Torch) Permute(x X, dims ...int) Value {
	pick := func(list []int64, dims []int) []int64 {
		out := make([]int64, len(dims))
		for i, d := range dims {
			out[i] = list[d]
		}
		return out
	}
	back := make([]int, len(dims))
	for i, d := range dims {
		back[d] = i
	}
	in := read(x)
	out := t.makeView("Permute", in, pick(in.Shape, dims), pick(in.stride, dims), func(g *Tensor) *Tensor {
		return t.alias(g, pick(g.Shape, back), pick(g.stride, back))
	})
	t.done(x)
	return Value{out}
}

// Unsqueeze is x.unsqueeze(dim), or x[:, None]: a dimension of size 1.
func (t *Torch) Unsqueeze(x X, dim int) Value {
	in := read(x)
	stride := int64(1)
	if dim < len(in.Shape) {
		stride = in.Shape[dim] * in.stride[dim]
	}
	shape, strides := slices.Insert(slices.Clone(in.Shape), dim, 1), slices.Insert(slices.Clone(in.stride), dim, stride)
	out := t.makeView("Unsqueeze", in, shape, strides, func(g *Tensor) *Tensor {
		return t.alias(g, in.Shape, slices.Delete(slices.Clone(g.stride), dim, dim+1))
	})
	t.done(x)
	return Value{out}
}

// Squeeze is x.squeeze(dim) of a dimension of size 1.
func (t *Torch) Squeeze(x X, dim int) Value {
	in := read(x)
	dim = (dim + len(in.Shape)) % len(in.Shape)
	without := func(list []int64) []int64 { return slices.Delete(slices.Clone(list), dim, dim+1) }
	out := t.makeView("Squeeze", in, without(in.Shape), without(in.stride), func(g *Tensor) *Tensor {
		stride := int64(1)
		if dim < len(g.Shape) {
			stride = g.Shape[dim] * g.stride[dim]
		}
		return t.alias(g, in.Shape, slices.Insert(slices.Clone(g.stride), dim, stride))
	})
	t.done(x)
	return Value{out}
}
