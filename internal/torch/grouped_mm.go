package torch

// GroupedMM is torch.nn.functional.grouped_mm(x, w, offs=offsets): rows of x, of which
// the offsets say where each group ends, times one matrix of w for each group
// (aten/src/ATen/native/cuda/GroupedBlas.cpp). How many rows a group has changes
// nothing that it asks for. Autocast does not know it. The gradient of w comes first
// (_grouped_mm_mat2_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) GroupedMM(x, w, offsets X) Value {
	a, b, offs := read(x), read(w), read(offsets)
	n := t.record("GroupedMm", a, b)
	if n != nil {
		var left, right *Tensor
		if n.wants(0) {
			right = t.save(n, b)
		}
		groups, inner, outer := b.Shape[0], b.Shape[1], b.Shape[2]
		t.save(n, offs)
		if n.wants(1) {
			left = t.save(n, a)
		}
		n.backward = func(g []*Tensor) []*Tensor {
			out, rows := make([]*Tensor, 2), g[0].Shape[0]
			if n.wants(1) {
				// Of a transposed matrix the gradient is transposed too.
				grad := t.groupedMM(left.DType, rows*inner*outer, groups, groups, outer, inner)
				out[1] = t.swapped(grad)
				t.release(grad)
			}
			if n.wants(0) {
				out[0] = t.groupedMM(right.DType, rows*inner*outer, groups, rows, inner)
			}
			return out
		}
	}
	out := t.groupedMM(a.DType, a.Numel()*b.Shape[2], b.Shape[0], a.Shape[0], b.Shape[2])
	n.made(out)
	t.done(x, w, offsets)
	return Value{out}
}

// groupedMM makes a product of groups. CUTLASS's kernel, of bfloat16 on cards of compute
// capability 9.0 and 10, takes pointers, strides and sizes of each group, and a workspace of
// four tensor maps for each multiprocessor (bf16bf16_grouped_gemm_impl_sm90_sm100,
// aten/src/ATen/native/cuda/GroupMM.cu). Else each group is a product of its own,
// into its part of the result (_grouped_mm_fallback, aten/src/ATen/native/GroupedMMUtils.h).
func (t *Torch) groupedMM(dtype DType, multiplications, groups int64, shape ...int64) *Tensor {
	out := t.empty(dtype, shape...)
	t.multiplied(dtype, 2*multiplications)
	if d := t.Device; dtype != BFloat16 || d.Major != 10 && (d.Major != 9 || d.Minor != 0) {
		t.blas()
		return out
	}
	const (
		pointer, stride = 8, 8
		shapes          = 3 * 4
		tensorMap       = 128
	)
	arguments := t.allocate(divUp(groups, 2)*2*3*pointer + groups*(shapes+3*stride))
	workspace := t.allocate(4 * tensorMap * int64(t.Device.SMs))
	t.drop(workspace)
	t.drop(arguments)
	return out
}
