package torch

import "slices"

// This file holds indexing by tensors and other operators on masks and
// positions that no gradient flows through.

// All is x.all() of a mask, a reduction to one bool.
func (t *Torch) All(x X) Value {
	reduced := make([]bool, len(read(x).Shape))
	for i := range reduced {
		reduced[i] = true
	}
	return t.all(x, reduced, nil)
}

// AllLast is x.all(-1, keepdim=True) of a mask.
func (t *Torch) AllLast(x X) Value {
	shape := slices.Clone(read(x).Shape)
	last := len(shape) - 1
	shape[last] = 1
	reduced := make([]bool, len(shape))
	reduced[last] = true
	return t.all(x, reduced, shape)
}

func (t *Torch) all(x X, reduced []bool, shape []int64) Value {
	out := t.empty(Bool, shape...)
	t.reduceScratch(read(x), reduced, Bool.Size())
	t.done(x)
	return Value{out}
}

// Index is x[a, b] of a matrix: an element for each pair of indices. The
// indices are expanded to their common shape and made contiguous if their
// strides differ (AdvancedIndex, aten/src/ATen/native/TensorAdvancedIndexing.cpp).
func (t *Torch) Index(x, a, b X) Value {
	shape := broadcast(read(a), read(b))
	first, second := t.expandPlain(read(a), shape), t.expandPlain(read(b), shape)
	if !slices.Equal(first.stride, second.stride) {
		first, second = t.replace(first, t.contiguousPlain(first)), t.replace(second, t.contiguousPlain(second))
	}
	out := t.empty(read(x).DType, shape...)
	t.release(second, first)
	t.done(x, a, b)
	return Value{out}
}

func (t *Torch) expandPlain(x *Tensor, shape []int64) *Tensor {
	return t.alias(x, shape, x.stridesIn(shape))
}

// CumsumLast is torch.cumsum of bools or int32 numbers along the last
// dimension. The numbers are cast to int64 for the call. CUB scans a single
// row; several rows do not need it (scan_dim,
// aten/src/ATen/native/cuda/ScanUtils.cuh).
func (t *Torch) CumsumLast(x X) Value {
	in := read(x)
	out := t.empty(Int64, in.Shape...)
	cast := t.emptyLike(in, Int64)
	if n := in.Numel(); n == in.Dim(-1) {
		t.drop(t.allocate(t.inclusiveSum(n)))
	}
	t.release(cast)
	t.done(x)
	return Value{out}
}

// Cumsum is torch.cumsum of float32, int32 or int64 numbers along the last dimension,
// in their type.
func (t *Torch) Cumsum(x X) Value {
	in := read(x)
	out := t.emptyLike(in, in.DType)
	if n := in.Numel(); n == in.Dim(-1) {
		scratch := t.inclusiveSum(n)
		if in.DType.Size() == 4 {
			scratch = t.inclusiveSum32(n)
		}
		t.drop(t.allocate(scratch))
	}
	t.done(x)
	return Value{out}
}
