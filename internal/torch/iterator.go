package torch

import (
	"slices"

	"memorymark/internal/steptime"
)

// This file is what TensorIterator decides about layouts
// (aten/src/ATen/TensorIterator.cpp): in which order pointwise and reduction
// kernels walk the dimensions, and so the strides of the results that are
// allocated for them.

// broadcast returns the common shape of tensors (infer_size).
func broadcast(tensors ...*Tensor) []int64 {
	n := 0
	for _, x := range tensors {
		n = max(n, len(x.Shape))
	}
	shape := make([]int64, n)
	for i := range shape {
		shape[i] = 1
	}
	for _, x := range tensors {
		for i, s := range x.Shape {
			if at := n - len(x.Shape) + i; s != 1 {
				shape[at] = s
			}
		}
	}
	return shape
}

// stridesIn returns a tensor's strides within a shape it is broadcast to.
func (x *Tensor) stridesIn(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	for i, s := range x.Shape {
		if at := len(shape) - len(x.Shape) + i; s == shape[at] && s != 1 {
			strides[at] = x.stride[i]
		}
	}
	return strides
}

// order returns the dimensions from the fastest to the slowest
// (reorder_dimensions): by the strides of the operands in turn, where a stride
// of 0 decides nothing. Reduced dimensions come first; reduced is nil for
// pointwise kernels.
func order(shape []int64, reduced []bool, operands ...[]int64) []int {
	perm := make([]int, len(shape))
	for i := range perm {
		perm[i] = len(shape) - 1 - i
	}
	swap := func(a, b int) int {
		if reduced != nil && reduced[a] != reduced[b] {
			if reduced[b] {
				return 1
			}
			return -1
		}
		for _, strides := range operands {
			sa, sb := strides[a], strides[b]
			switch {
			case sa == 0 || sb == 0:
				continue
			case sa < sb:
				return -1
			case sa > sb || shape[a] > shape[b]:
				return 1
			}
		}
		return 0
	}
	for i := 1; i < len(perm); i++ {
		for moving, j := i, i-1; j >= 0; j-- {
			c := swap(perm[j], perm[moving])
			if c < 0 {
				break
			}
			if c > 0 {
				perm[j], perm[moving] = perm[moving], perm[j]
				moving = j
			}
		}
	}
	return perm
}

// resultStrides returns the strides of a result that a pointwise kernel
// allocates.
func resultStrides(shape []int64, operands ...*Tensor) []int64 {
	if allContiguous(shape, operands) {
		return contiguousStrides(shape)
	}
	if first := operands[0]; first.isDense() && !slices.ContainsFunc(operands, func(x *Tensor) bool {
		return !slices.Equal(x.Shape, shape) || !slices.Equal(x.stride, first.stride)
	}) {
		return slices.Clone(first.stride) // FastSetupType::NON_OVERLAPPING_DENSE
	}
	return stridesInOrder(shape, operands)
}

// allContiguous reports whether the operands are contiguous tensors of a shape.
func allContiguous(shape []int64, operands []*Tensor) bool {
	for _, x := range operands {
		if !slices.Equal(x.Shape, shape) || !x.isContiguous() {
			return false
		}
	}
	return true
}

func stridesInOrder(shape []int64, operands []*Tensor) []int64 {
	views := make([][]int64, len(operands))
	for i, x := range operands {
		views[i] = x.stridesIn(shape)
	}
	strides := make([]int64, len(shape))
	n := int64(1)
	for _, d := range order(shape, nil, views...) {
		strides[d] = n
		n *= shape[d]
	}
	return strides
}

// pointwise allocates the result of a kernel that computes elements from
// elements.
func (t *Torch) pointwise(dtype DType, operands ...*Tensor) *Tensor {
	since := t.moment()
	var out *Tensor
	if shape := operands[0].Shape; allContiguous(shape, operands) { // mostly
		out = t.empty(dtype, shape...)
	} else {
		shape := broadcast(operands...)
		out = t.emptyStrided(dtype, shape, resultStrides(shape, operands...))
	}
	t.noteElements(since, out, operands)
	return out
}

// noteElements notes the kernel of a result in place of what its memory stands for.
// Operands of other types are read one element at a time, those that are broadcast
// or in another order by computed addresses (aten/src/ATen/native/cuda/CUDALoops.cuh).
func (t *Torch) noteElements(since int, out *Tensor, operands []*Tensor) {
	bytes, kind := out.bytes(), steptime.Kernel
	for _, x := range operands {
		bytes += x.bytes()
		switch {
		case len(x.Shape) == 0:
		case x.Numel() < out.Numel() && kind == steptime.Kernel:
			kind = steptime.Row
		case x.DType != out.DType && x.DType.Size() < out.DType.Size():
			kind = steptime.Widen
		}
	}
	t.noteFused(since, kind, out.DType, float64(bytes))
}
