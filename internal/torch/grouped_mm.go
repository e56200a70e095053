package torch

import "memorymark/internal/steptime"

// GroupedMM is torch.nn.functional.grouped_mm(x, w, offs=offsets): groups of rows of
// x, whose ends are the offsets, times one matrix of w for each group
// (aten/src/ATen/native/cuda/GroupedBlas.cpp). Its memory does not depend on the
// number of rows in a group. Autocast does not cover it. The gradient of w comes first
// (_grouped_mm_mat2_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) GroupedMM(x, w, offsets X) Value {
	a, b, offs := read(x), read(w), read(offsets)
	if !t.is(Device.isAmpere) {
		out := t.groupedLoop(a, b, offs)
		t.done(x, w, offsets)
		return Value{out}
	}
	n := t.record("GroupedMm", a, b)
	if n != nil {
		var left, right *Tensor
		if n.wants(0) {
			right = t.save(n, b)
		}
		groups, inner, outer := b.Shape[0], b.Shape[1], b.Shape[2]
		columns := b.stride[1] == 1 && b.stride[2] >= max(1, inner)
		t.save(n, offs)
		if n.wants(1) {
			left = t.save(n, a)
		}
		n.backward = func(g []*Tensor) []*Tensor {
			out, rows := make([]*Tensor, 2), g[0].Shape[0]
			switch {
			case n.wants(1) && !columns:
				out[1] = t.groupedMM(left.DType, rows*inner*outer, groups, groups, inner, outer)
			case n.wants(1): // a transposed matrix has a transposed gradient
				grad := t.groupedMM(left.DType, rows*inner*outer, groups, groups, outer, inner)
				out[1] = t.transposeBatch(grad)
				t.release(grad)
			}
			if n.wants(0) {
				out[0] = t.groupedMM(right.DType, rows*inner*outer, groups, rows, inner)
			}
			return out
		}
	}
	out := t.groupedMM(a.DType, a.Numel()*b.Shape[2], b.Shape[0], a.Shape[0], b.Shape[2])
	n.setOutputs(out)
	t.done(x, w, offsets)
	return Value{out}
}

// groupedMM makes a product of groups. CUTLASS's kernel, for bfloat16 on some cards, needs
// pointers, strides and sizes of each group, and a workspace of tensor maps for each
// multiprocessor (bf16bf16_grouped_gemm_impl_sm90_sm100, aten/src/ATen/native/cuda/GroupMM.cu).
// Otherwise each group is a separate product into its part of the result (_grouped_mm_fallback,
// aten/src/ATen/native/GroupedMMUtils.h).
func (t *Torch) groupedMM(dtype DType, multiplications, groups int64, shape ...int64) *Tensor {
	since := t.moment()
	out := t.empty(dtype, shape...)
	t.countGroups(since, dtype, multiplications, groups, shape)
	maps := int64(0)
	if dtype == BFloat16 {
		rows, columns := shape[len(shape)-2], shape[len(shape)-1]
		if len(shape) == 2 {
			rows /= groups
		}
		maps = t.ask(func(d Device) int64 { return d.tensorMaps(rows, columns) })
	}
	if maps == 0 {
		t.blas()
		return out
	}
	const (
		pointer, stride = 8, 8
		sizes           = 3 * 4
		tensorMap       = 128
	)
	arguments := t.allocate(divUp(groups, 2)*2*3*pointer + groups*(sizes+3*stride))
	workspace := t.allocateSized(func(d Device) int64 { return maps * tensorMap * int64(d.SMs) })
	t.drop(workspace)
	t.drop(arguments)
	return out
}

// countGroups notes products of groups of rows, as if all groups had as many.
func (t *Torch) countGroups(since int, dtype DType, multiplications, groups int64, shape []int64) {
	rows, columns := shape[len(shape)-2], shape[len(shape)-1]
	if len(shape) == 2 {
		rows = divUp(rows, groups)
	}
	inner := divUp(multiplications, max(rows*columns*groups, 1))
	t.noteFused(since, steptime.Product, dtype, float64(rows), float64(columns), float64(inner), float64(groups), float64(steptime.InputLayout), 16)
}

// tensorMaps is how many tensor maps CUTLASS allocates for each multiprocessor: on compute
// capability 9.0 one each for both operands, the result and the addend; on 10 as many as tiles
// can be in flight, by the tile size for groups of equal size
// (dispatch_bf16_grouped_kernel_on_tile_size). It is 0 without a kernel.
func (d Device) tensorMaps(rows, columns int64) int64 {
	switch {
	case d.isHopper():
		return 4
	case d.Major == 10 && (rows <= 128 || columns <= 128):
		return 42
	case d.Major == 10:
		return 46
	default:
		return 0
	}
}

// groupedLoop is grouped_mm_fallback, what transformers has for cards before compute
// capability 8.0 (transformers/integrations/moe.py): a function in Python that multiplies
// group by group into zeros. It saves all its inputs, and makes the gradient of x first.
func (t *Torch) groupedLoop(a, b, offs *Tensor) *Tensor {
	n := t.record("GroupedMmFallback", a, b)
	since := t.moment()
	out := t.empty(a.DType, a.Shape[0], b.Shape[2])
	t.countGroups(since, a.DType, a.Numel()*b.Shape[2], b.Shape[0], out.Shape)
	t.blas()
	if n == nil {
		return out
	}
	left, right := t.save(n, a), t.save(n, b)
	n.kept = append(n.kept, t.retain(offs))
	n.backward = func(g []*Tensor) []*Tensor {
		multiplications := left.Numel() * right.Shape[2]
		since := t.moment()
		ofLeft := t.empty(left.DType, left.Shape...)
		t.countGroups(since, left.DType, multiplications, right.Shape[0], left.Shape)
		since = t.moment()
		ofRight := t.emptyLike(right, right.DType)
		t.countGroups(since, left.DType, multiplications, right.Shape[0], right.Shape)
		return []*Tensor{ofLeft, ofRight}
	}
	n.setOutputs(out)
	return out
}
