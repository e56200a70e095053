package torch

import "slices"

// This file holds what routes tokens to experts: the largest of a row, and
// sorting by them.

// TopK is torch.topk(x, k, dim=-1): the values and their indices, which are saved. A
// row of up to 4096 is sorted in place (aten/src/ATen/native/cuda/TensorTopK.cpp).
// The gradient is scattered into zeros (value_selecting_reduction_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) TopK(x X, k int64) (values, indices Value) {
	in := read(x)
	top, places := t.largest(in, "Topk", append(slices.Clone(in.Shape[:len(in.Shape)-1]), k))
	t.done(x)
	return Value{top}, Value{places}
}

// MaxLast is x.max(dim=-1, keepdim), likewise.
func (t *Torch) MaxLast(x X, keep bool) (values, indices Value) {
	in := read(x)
	shape := slices.Clone(in.Shape[:len(in.Shape)-1])
	if keep {
		shape = append(shape, 1)
	}
	top, places := t.largest(in, "Max", shape)
	t.done(x)
	return Value{top}, Value{places}
}

// largest makes the largest values of rows, and their indices.
func (t *Torch) largest(in *Tensor, name string, shape []int64) (top, places *Tensor) {
	top, places = t.empty(in.DType, shape...), t.empty(Int64, shape...)
	if n := t.record(name, in); n != nil {
		t.save(n, places)
		full := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, full...) }
		n.setOutputs(top)
	}
	return top, places
}

// Sort is torch.sort of int64 numbers in one dimension: the sorted numbers and
// their indices. Up to 4096 are sorted in place with their indices, more by CUB
// (aten/src/ATen/native/cuda/Sort.cpp, SortStable.cu).
func (t *Torch) Sort(x X) (sorted, places Value) {
	const inPlace = 4096
	n := read(x).Numel()
	values, indices, arange := t.empty(Int64, n), t.empty(Int64, n), t.empty(Int64, n)
	if n > inPlace {
		t.scratchSized(radixSortPairs(n, 64))
	}
	t.release(arange)
	t.done(x)
	return Value{values}, Value{indices}
}
