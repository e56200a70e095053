package torch

import (
	"math/bits"
	"slices"
)

// IndexRows is x[a, b] of a tensor of three dimensions: a row for each pair of
// indices, both of the shape [n]. They are saved for backward.
func (t *Torch) IndexRows(x, a, b X) Value {
	out := t.indexDim(read(x), 1, read(a), read(b))
	t.done(x, b, a) // a tuple frees its last element first
	return Value{out}
}

// Rows is x[index]: a row, or a number of a vector, for each element of the
// index. The index is saved for backward.
func (t *Torch) Rows(x, index X) Value {
	out := t.indexDim(read(x), 0, read(index))
	t.done(x, index)
	return Value{out}
}

// indexDim selects the elements after dimension last for each index, or pair of
// indices. Its backward adds into zeros (index_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) indexDim(in *Tensor, last int, index ...*Tensor) *Tensor {
	n := t.record("Index", in)
	if n != nil {
		for _, i := range index {
			t.save(n, i)
		}
		rows, places := index[0].Numel(), product(in.Shape[:last+1])
		n.backward = func(g []*Tensor) []*Tensor {
			grad := t.empty(in.DType, in.Shape...)
			t.indexPut(g[0], rows, places, len(index), nil)
			return []*Tensor{grad}
		}
	}
	out := t.empty(in.DType, slices.Concat(index[0].Shape, in.Shape[last+1:])...)
	n.setOutputs(out)
	return out
}

// UniqueConsecutive is torch.unique_consecutive of a vector: its output is allocated
// for all elements, and its length is a number on the device
// (aten/src/ATen/native/cuda/UniqueCub.cu).
func (t *Torch) UniqueConsecutive(x X) Value {
	in := read(x)
	out := t.empty(in.DType, in.Shape...)
	length := t.empty(Int64)
	n, v := in.Numel(), t.Version
	t.scratchSized(func(d Device) int64 { return d.selectTrue(v, n) })
	t.release(length)
	t.done(x)
	return Value{out}
}

// indexPut is index_put_ that accumulates: the indices are linearized, and rows are
// sorted by them and then added (aten/src/ATen/native/cuda/Indexing.cu,
// index_put_with_sort_kernel). Indices that were made for the call are freed once
// they are linearized.
func (t *Torch) indexPut(values *Tensor, n, places int64, indices int, made *Tensor) {
	wrapped := t.empty(Int64, n) // remainder
	linear := t.empty(Int64, n)  // times the stride
	t.release(wrapped)
	for range indices - 1 {
		wrapped = t.empty(Int64, n)
		strided := t.empty(Int64, n)
		t.release(wrapped, strided) // added in place
	}
	t.release(made)
	dense := t.contiguousPlain(values)
	sorted, original := t.empty(Int64, n), t.empty(Int64, n)
	t.scratchSized(radixSortPairs(n, bits.Len64(uint64(places-1))), t.empty(Int64, n)) // arange
	t.release(original, sorted, dense, linear)
}

// ArgMaxLast is x.argmax(-1) of int32, which carries a value and its index
// while it reduces.
func (t *Torch) ArgMaxLast(x X) Value {
	in := read(x)
	out := t.empty(Int64, in.Shape[:len(in.Shape)-1]...)
	reduced := make([]bool, len(in.Shape))
	reduced[len(reduced)-1] = true
	const accumulator = 16
	t.reduceScratch(in, reduced, accumulator)
	t.done(x)
	return Value{out}
}
