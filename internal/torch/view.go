package torch

import (
	"slices"

	"memorymark/internal/steptime"
)

// This file holds the operators that make views, and those that copy only where
// a view is not possible. Views allocate nothing; their backward may.

// makeView makes the result of a view operator with its node.
func (t *Torch) makeView(name string, x *Tensor, shape, stride []int64, backward func(grad *Tensor) *Tensor) *Tensor {
	out := t.alias(x, shape, stride)
	if n := t.record(name, x); n != nil {
		n.gradient = backward
		n.setOutputs(out)
	}
	return out
}

// viewStrides returns the strides of x seen in another shape, nil if that
// takes a copy (at::detail::computeStride).
func (t *Torch) viewStrides(x *Tensor, shape []int64) []int64 {
	out := t.ints.take(len(shape))
	at := len(shape) - 1
	chunk := int64(1) // elements of the run of old dimensions
	base := int64(1)  // stride of its fastest one
	started := false
	for d := len(x.Shape) - 1; d >= 0; d-- {
		if !started {
			base = x.stride[d]
			started = true
		}
		chunk *= x.Shape[d]
		if d > 0 && (x.Shape[d-1] == 1 || x.stride[d-1] == chunk*base) {
			continue // the next one continues the run
		}
		filled := int64(1)
		for at >= 0 && (filled < chunk || shape[at] == 1) {
			out[at] = filled * base
			filled *= shape[at]
			at--
		}
		if filled != chunk {
			return nil
		}
		chunk, started = 1, false
	}
	for ; at >= 0; at-- {
		out[at] = 1
	}
	return out
}

// infer replaces the -1 of a shape.
func (t *Torch) infer(x *Tensor, given []int64) []int64 {
	shape := t.cloneInts(given)
	known, unknown := int64(1), -1
	for i, s := range shape {
		if s == -1 {
			unknown = i
		} else {
			known *= s
		}
	}
	if unknown >= 0 {
		shape[unknown] = x.Numel() / known
	}
	return shape
}

// view is Tensor.view.
func (t *Torch) view(x *Tensor, given ...int64) *Tensor {
	shape := t.infer(x, given)
	old := x.Shape
	return t.makeView("View", x, shape, t.viewStrides(x, shape), func(g *Tensor) *Tensor { return t.reshapePlain(g, old) })
}

// reshapePlain is reshape outside the graph: a view, or a copy.
func (t *Torch) reshapePlain(x *Tensor, shape []int64) *Tensor {
	if strides := t.viewStrides(x, shape); strides != nil {
		return t.alias(x, shape, strides)
	}
	return t.empty(x.DType, shape...)
}

// reshape is Tensor.reshape: a view if possible, else a contiguous clone in the
// new shape.
func (t *Torch) reshape(x *Tensor, given ...int64) *Tensor {
	shape := t.infer(x, given)
	if t.viewStrides(x, shape) != nil {
		return t.view(x, shape...)
	}
	copied := t.clone(x)
	out := t.unsafeView(copied, shape)
	t.release(copied)
	return out
}

// unsafeView is _unsafe_view: the tensor in another shape, not tracked as a
// view.
func (t *Torch) unsafeView(x *Tensor, shape []int64) *Tensor {
	old := x.Shape
	out := t.detach(x)
	out.Shape, out.stride = shape, t.viewStrides(x, shape)
	if n := t.record("UnsafeView", x); n != nil {
		n.gradient = func(g *Tensor) *Tensor { return t.reshapePlain(g, old) }
		n.setOutputs(out)
	}
	return out
}

// clone copies into contiguous memory.
func (t *Torch) clone(x *Tensor) *Tensor {
	since := t.moment()
	out := t.empty(x.DType, x.Shape...)
	if !x.isDense() || !x.isContiguous() {
		t.noteFused(since, steptime.Strided, x.DType, float64(2*out.bytes()))
	}
	if n := t.record("Clone", x); n != nil {
		n.gradient = func(g *Tensor) *Tensor { return t.retain(g) }
		n.setOutputs(out)
	}
	return out
}

// contiguous returns the tensor itself if it is contiguous, else a clone; the
// caller owns a reference either way.
func (t *Torch) contiguous(x *Tensor) *Tensor {
	if x.isContiguous() {
		return t.retain(x)
	}
	return t.clone(x)
}

// cloneInts copies sizes or strides.
func (t *Torch) cloneInts(of []int64) []int64 {
	out := t.ints.take(len(of))
	copy(out, of)
	return out
}

func (t *Torch) transpose(x *Tensor, a, b int) *Tensor {
	a, b = (a+len(x.Shape))%len(x.Shape), (b+len(x.Shape))%len(x.Shape)
	swap := func(list []int64) []int64 {
		list = t.cloneInts(list)
		list[a], list[b] = list[b], list[a]
		return list
	}
	return t.makeView("Transpose", x, swap(x.Shape), swap(x.stride), func(g *Tensor) *Tensor {
		return t.alias(g, swap(g.Shape), swap(g.stride))
	})
}

// slice takes a range of a dimension; its backward makes a full tensor of
// zeros (slice_backward).
func (t *Torch) slice(x *Tensor, dim int, from, to int64) *Tensor {
	dim = (dim + len(x.Shape)) % len(x.Shape)
	shape := t.cloneInts(x.Shape)
	shape[dim] = to - from
	full := x.Shape
	return t.makeView("Slice", x, shape, x.stride, func(g *Tensor) *Tensor { return t.empty(g.DType, full...) })
}

// pick takes one element of a dimension (Tensor.select); its backward makes a
// full tensor of zeros.
func (t *Torch) pick(x *Tensor, dim int) *Tensor {
	shape := slices.Delete(slices.Clone(x.Shape), dim, dim+1)
	stride := slices.Delete(slices.Clone(x.stride), dim, dim+1)
	full := x.Shape
	return t.makeView("Select", x, shape, stride, func(g *Tensor) *Tensor { return t.empty(g.DType, full...) })
}

// expand repeats dimensions of size 1 without memory; its backward sums.
func (t *Torch) expand(x *Tensor, given ...int64) *Tensor {
	shape := t.cloneInts(given)
	stride := t.ints.take(len(shape))
	lead := len(shape) - len(x.Shape)
	for i := lead; i < len(shape); i++ {
		if shape[i] == -1 {
			shape[i] = x.Shape[i-lead]
		}
		if x.Shape[i-lead] == shape[i] {
			stride[i] = x.stride[i-lead]
		}
	}
	old := x.Shape
	return t.makeView("Expand", x, shape, stride, func(g *Tensor) *Tensor { return t.sumTo(g, old) })
}

// View is x.view(shape).
func (t *Torch) View(x X, shape ...int64) Value {
	out := t.view(read(x), shape...)
	t.done(x)
	return Value{out}
}

// Reshape is x.reshape(shape).
func (t *Torch) Reshape(x X, shape ...int64) Value {
	out := t.reshape(read(x), shape...)
	t.done(x)
	return Value{out}
}

// Contiguous is x.contiguous().
func (t *Torch) Contiguous(x X) Value {
	out := t.contiguous(read(x))
	t.done(x)
	return Value{out}
}

// CloneWithGrad is x.clone() with its node.
func (t *Torch) CloneWithGrad(x X) Value {
	out := t.clone(read(x))
	t.done(x)
	return Value{out}
}

// RepeatInterleave is x.repeat_interleave(n, dim): a copy of an expanded view
// (aten/src/ATen/native/Repeat.cpp, repeat_interleave_symint).
func (t *Torch) RepeatInterleave(x X, n int64, dim int) Value {
	shape := read(x).Shape
	dim = (dim + len(shape)) % len(shape)
	wide := slices.Insert(slices.Clone(shape), dim+1, n)
	joined := slices.Clone(shape)
	joined[dim] *= n
	return t.View(t.CloneWithGrad(t.Expand(t.Unsqueeze(x, dim+1), wide...)), joined...)
}

// Transpose is x.transpose(a, b).
func (t *Torch) Transpose(x X, a, b int) Value {
	out := t.transpose(read(x), a, b)
	t.done(x)
	return Value{out}
}

// Slice is x[..., from:to, ...] of a dimension; all of it, x[:], is an alias (applySlice,
// aten/src/ATen/TensorIndexing.h). Before 2.11 it is a slice like others: its missing end
// is the largest integer, and not the size.
func (t *Torch) Slice(x X, dim int, from, to int64) Value {
	if from == 0 && to == read(x).Dim(dim) && !t.Version.Before(2, 11) {
		return t.Alias(x)
	}
	out := t.slice(read(x), dim, from, to)
	t.done(x)
	return Value{out}
}

// SliceTo is x[..., :to] of a dimension. Where that is its size, it is an alias in
// every version.
func (t *Torch) SliceTo(x X, dim int, to int64) Value {
	if to == read(x).Dim(dim) {
		return t.Alias(x)
	}
	return t.Slice(x, dim, 0, to)
}

// Select is x[..., i, ...] of a dimension.
func (t *Torch) Select(x X, dim int) Value {
	out := t.pick(read(x), dim)
	t.done(x)
	return Value{out}
}

// Expand is x.expand(shape).
func (t *Torch) Expand(x X, shape ...int64) Value {
	out := t.expand(read(x), shape...)
	t.done(x)
	return Value{out}
}

// Alias is x[:] of all of it: another view.
func (t *Torch) Alias(x X) Value {
	in := read(x)
	out := t.makeView("Alias", in, in.Shape, in.stride, func(g *Tensor) *Tensor { return t.retain(g) })
	t.done(x)
	return Value{out}
}

// RepeatRows is x.repeat(n, 1, ...) of a tensor whose first dimension is 1: a
// copy. Its backward sums (repeat_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) RepeatRows(x X, n int64) Value {
	in := read(x)
	shape := slices.Clone(in.Shape)
	shape[0] = n
	out := t.empty(in.DType, shape...)
	if node := t.record("Repeat", in); node != nil {
		old := in.Shape
		node.backward = func(g []*Tensor) []*Tensor {
			if n == 1 {
				return []*Tensor{t.reshapePlain(g[0], old)}
			}
			parts := t.reshapePlain(g[0], append([]int64{n}, old...))
			sum := t.sum(parts, []int{0}, false, parts.DType)
			t.release(parts)
			return []*Tensor{sum}
		}
		node.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}
