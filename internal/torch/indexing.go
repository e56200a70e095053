package torch

import "slices"

// IndexBy is x[..., a, ..., b, ...] of whole numbers, a tensor for some of the dimensions
// and nil for the others. Indices are expanded to their common shape. Those next to each
// other stay where they are, others come to the front
// (aten/src/ATen/native/TensorAdvancedIndexing.cpp). The gradient is added into zeros.
func (t *Torch) IndexBy(x X, index []*Tensor) Value {
	in := read(x)
	given, shape, before, sizes := indexedShape(in, index)
	n := t.record("Index", in)
	if n != nil {
		for _, i := range given {
			t.save(n, i)
		}
		rows, places := product(shape), product(sizes)
		n.gradient = func(g *Tensor) *Tensor {
			grad := t.empty(in.DType, in.Shape...)
			t.indexPut(g, rows, places, len(given), nil)
			return grad
		}
	}
	rest := slices.Clone(in.Shape[before:])
	rest = rest[:0]
	for i := before; i < len(in.Shape); i++ {
		if i >= len(index) || index[i] == nil {
			rest = append(rest, in.Shape[i])
		}
	}
	release := t.expandedIndices(given, shape)
	out := t.empty(in.DType, slices.Concat(in.Shape[:before], shape, rest)...)
	release()
	n.setOutputs(out)
	t.done(x)
	return Value{out}
}

// indexedShape are the indices that are given, their common shape, how many dimensions come
// before them in the result, and the sizes of those they index.
func indexedShape(in *Tensor, index []*Tensor) (given []*Tensor, shape []int64, before int, sizes []int64) {
	first, last := -1, -1
	for i, at := range index {
		if at == nil {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		given, sizes = append(given, at), append(sizes, in.Shape[i])
	}
	shape = broadcast(given...)
	before = first
	for i := first; i <= last; i++ {
		if index[i] == nil {
			before = 0 // they are transposed to the front
		}
	}
	return given, shape, before, sizes
}

// expandedIndices makes indices of one shape, dense copies where their strides differ
// (AdvancedIndex).
func (t *Torch) expandedIndices(given []*Tensor, shape []int64) (release func()) {
	expanded := make([]*Tensor, len(given))
	for i, at := range given {
		expanded[i] = t.expandPlain(at, shape)
	}
	if slices.ContainsFunc(expanded, func(x *Tensor) bool { return !slices.Equal(x.stride, expanded[0].stride) }) {
		for i, x := range expanded {
			expanded[i] = t.replace(x, t.contiguousPlain(x))
		}
	}
	return func() {
		slices.Reverse(expanded)
		t.release(expanded...)
	}
}

// PutBy is x[..., a, ...] = value in place: index_put_. Of a value that needs a gradient,
// backward picks what the indices name (index_put_ in tools/autograd/derivatives.yaml).
func (t *Torch) PutBy(x *Var, index []*Tensor, value X) {
	in, v := x.tensor, read(value)
	given, shape, _, _ := indexedShape(in, index)
	n := t.record("IndexPut", in, v)
	if n != nil {
		for _, i := range given {
			t.save(n, i)
		}
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(1) {
				out[1] = t.NoGradIndex(g[0], index)
			}
			if n.wants(0) {
				copied := t.emptyLike(g[0], g[0].DType)
				t.release(t.empty(g[0].DType))
				out[0] = copied
			}
			return out
		}
	}
	t.expandedIndices(given, shape)()
	if n != nil {
		t.setHistory(in, n)
	}
	t.done(value)
}

// PutMasked is x[mask] = value of as many rows, which looks for their places again for each
// gradient.
func (t *Torch) PutMasked(x *Var, mask, value X, rows int64) {
	in, at, v := x.tensor, read(mask), read(value)
	if n := t.record("IndexPut", in, v); n != nil {
		kept, shape, dtype := t.save(n, at), v.Shape, v.DType
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(0) {
				zeros := t.empty(dtype, shape...)
				out[0] = t.emptyLike(g[0], g[0].DType)
				t.release(t.nonzero(kept, rows), zeros)
			}
			if n.wants(1) {
				out[1] = t.rowsOf(g[0], kept, rows)
				if len(shape) < len(out[1].Shape) { // it was broadcast (sum_to)
					sum := t.sum(out[1], []int{0}, true, dtype)
					out[1] = t.replace(out[1], t.view(sum, shape...))
					t.release(sum)
				}
			}
			return out
		}
		t.setHistory(in, n)
	}
	t.release(t.nonzero(at, rows))
	t.done(mask, value)
}

// rowsOf is x[mask] outside the graph.
func (t *Torch) rowsOf(x, mask *Tensor, rows int64) *Tensor {
	places := t.nonzero(mask, rows)
	out := t.empty(x.DType, append([]int64{rows}, x.Shape[len(mask.Shape):]...)...)
	t.release(places)
	return out
}

// NoGradIndex is x[index] outside the graph.
func (t *Torch) NoGradIndex(x *Tensor, index []*Tensor) *Tensor {
	var out Value
	t.NoGrad(func() { out = t.IndexBy(Borrow(x), index) })
	return out.tensor
}

// IndexSelect is x.index_select(dim, index). It saves the index; its backward adds into
// zeros (index_select_backward).
func (t *Torch) IndexSelect(x X, dim int, index X) Value {
	in, at := read(x), read(index)
	dim = (dim + len(in.Shape)) % len(in.Shape)
	shape := t.cloneInts(in.Shape)
	shape[dim] = at.Numel()
	out := t.empty(in.DType, shape...)
	if n := t.record("IndexSelect", in); n != nil {
		t.save(n, at)
		full := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, full...) }
		n.setOutputs(out)
	}
	t.done(x, index)
	return Value{out}
}

// Scatter is x.scatter(dim, index, source), a copy. The gradient of x is filled with zeros
// at the indices; that of the source is gathered.
func (t *Torch) Scatter(x, index, source X) Value {
	in, at := read(x), read(index)
	n := t.scatterNode(in, at, source, true)
	out := t.emptyLike(in, in.DType)
	n.setOutputs(out)
	t.done(x, index)
	if source != nil {
		t.done(source)
	}
	return Value{out}
}

// ScatterInPlace is x.scatter_(dim, index, source), or scatter_add_ and index_add_, which
// leave the gradient of x as it is.
func (t *Torch) ScatterInPlace(x *Var, index, source X, adds bool) {
	if n := t.scatterNode(x.tensor, read(index), source, !adds); n != nil {
		t.setHistory(x.tensor, n)
	}
	t.done(index)
	if source != nil {
		t.done(source)
	}
}

func (t *Torch) scatterNode(in, at *Tensor, source X, fills bool) *node {
	var v *Tensor
	if source != nil {
		v = read(source)
	}
	n := t.record("Scatter", in, v)
	if n == nil {
		return nil
	}
	t.save(n, at)
	n.backward = func(g []*Tensor) []*Tensor {
		out := t.lists.take(2)
		if n.wants(0) {
			if fills {
				out[0] = t.emptyLike(g[0], g[0].DType)
			} else {
				out[0] = t.retain(g[0])
			}
		}
		if n.wants(1) {
			out[1] = t.empty(g[0].DType, v.Shape...)
		}
		return out
	}
	return n
}

// IndexAdd is x.index_add(dim, index, source) in place.
func (t *Torch) IndexAdd(x *Var, index, source X) { t.ScatterInPlace(x, index, source, true) }

// MaskedRows is x[mask] of which that many elements are true. The mask is saved for
// backward, which searches it again.
func (t *Torch) MaskedRows(x, mask X, rows int64) Value {
	in, at := read(x), read(mask)
	n := t.record("Index", in)
	if n != nil {
		kept := t.save(n, at)
		n.gradient = func(g *Tensor) *Tensor {
			grad := t.empty(in.DType, in.Shape...)
			t.indexPut(g, rows, product(kept.Shape), len(kept.Shape), t.nonzero(kept, rows))
			return grad
		}
	}
	out := t.rowsOf(in, at, rows)
	n.setOutputs(out)
	t.done(x, mask)
	return Value{out}
}
