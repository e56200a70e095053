package torch

// SumBools is x.sum() of booleans: an int64, summed from a copy in int64, as
// the kernel does not cast while it reads (aten/src/ATen/native/ReduceOps.cpp,
// sum; TensorIterator casts what the kernel cannot).
func (t *Torch) SumBools(x X) Value {
	in := read(x)
	out := t.empty(Int64)
	wide := t.emptyLike(in, Int64)
	all := make([]bool, len(in.Shape))
	for i := range all {
		all[i] = true
	}
	t.reduceScratch(wide, all, Int64.Size())
	t.release(wide)
	t.done(x)
	return Value{out}
}

// MaxOf is torch.max(x) of all elements.
func (t *Torch) MaxOf(x X) Value {
	in := read(x)
	out := t.empty(in.DType)
	all := make([]bool, len(in.Shape))
	for i := range all {
		all[i] = true
	}
	t.reduceScratch(in, all, in.DType.Size())
	t.done(x)
	return Value{out}
}

// Sum is x.sum(dim) of floats. Its backward expands the gradient, a view.
func (t *Torch) Sum(x X, dim int) Value {
	in := t.upper(read(x)) // sum is on autocast's fp32 list
	out := t.sum(in, []int{dim}, false, in.DType)
	if n := t.record("Sum", in); n != nil {
		shape := in.Shape
		n.backward = func(g []*Tensor) []*Tensor {
			wide := t.Unsqueeze(Borrow(g[0]), dim)
			return []*Tensor{t.Expand(wide, shape...).tensor}
		}
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// SumAll is torch.sum(x) of floats, likewise.
func (t *Torch) SumAll(x X) Value { return t.sumExpanded(x, allDims(read(x)), false) }

// SumLast is x.sum(-1, keepdim=True) of floats, likewise.
func (t *Torch) SumLast(x X) Value { return t.sumExpanded(x, []int{-1}, true) }

// sumExpanded is a sum whose gradient can be expanded as it is.
func (t *Torch) sumExpanded(x X, dims []int, keep bool) Value {
	in := t.upper(read(x))
	out := t.sum(in, dims, keep, in.DType)
	if n := t.record("Sum", in); n != nil {
		shape := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.expand(g, shape...) }
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

// allDims are those of a tensor, for a reduction to one element.
func allDims(x *Tensor) []int {
	dims := make([]int, len(x.Shape))
	for i := range dims {
		dims[i] = i
	}
	return dims
}

// CountLast is x.sum(-1, keepdim=True) of a mask, in int64, to which booleans are
// cast first.
func (t *Torch) CountLast(x X) Value {
	in := t.retain(read(x))
	shape := append([]int64{}, in.Shape...)
	shape[len(shape)-1] = 1
	out := t.empty(Int64, shape...)
	if in.DType != Int64 {
		in = t.replace(in, t.emptyLike(in, Int64))
	}
	reduced := make([]bool, len(in.Shape))
	reduced[len(reduced)-1] = true
	t.reduceScratch(in, reduced, Int64.Size())
	t.release(in)
	t.done(x)
	return Value{out}
}
