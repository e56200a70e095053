package torch

import "slices"

// This file holds torch.matmul and the products it reduces to
// (aten/src/ATen/native/LinearAlgebra.cpp, _matmul_impl).

// matmul multiplies tensors of two dimensions or more. A batch of matrices
// times one matrix is folded into a single product; anything else becomes a
// batched product of operands that are expanded and flattened, which copies
// those whose batch dimensions cannot be joined.
func (t *Torch) matmul(a, b *Tensor) *Tensor {
	switch {
	case len(a.Shape) == 2 && len(b.Shape) == 2:
		return t.mmRecorded(a, b)
	case len(b.Shape) == 2 && folds(a, b):
		last := len(a.Shape) - 1
		shape := append(slices.Clone(a.Shape[:last]), b.Shape[1])
		flat := t.reshape(a, product(a.Shape[:last]), a.Shape[last])
		out := t.mmRecorded(flat, b)
		t.release(flat)
		viewed := t.unsafeView(out, shape)
		t.release(out)
		return viewed
	case len(a.Shape) == 2 && learns(a):
		return t.matmulTransposed(a, b)
	case len(a.Shape) == 3 && len(b.Shape) == 3 && a.Shape[0] != b.Shape[0] && (a.Shape[0] == 1 && learns(a) || b.Shape[0] == 1 && learns(b)):
		return t.matmulOfOne(a, b)
	default:
		return t.matmulBatched(a, b)
	}
}

// learns reports whether a tensor needs a gradient, also if it is a view that was made under
// no_grad.
func learns(x *Tensor) bool { return x.requiresGrad || x.base != nil && x.base.requiresGrad }

// matmulTransposed is a matrix that needs a gradient times a batch: that of the transposed
// ones, which folds, and is copied in the order of the result.
func (t *Torch) matmulTransposed(a, b *Tensor) *Tensor {
	right, left := t.transpose(b, -2, -1), t.transpose(a, 0, 1)
	product := t.matmul(right, left)
	back := t.transpose(product, -2, -1)
	out := t.contiguous(back)
	t.release(back, product, left, right)
	return out
}

// matmulOfOne multiplies a batch with a batch of one that needs a gradient: by its matrix.
func (t *Torch) matmulOfOne(a, b *Tensor) *Tensor {
	left, right := t.retain(a), t.retain(b)
	if a.Shape[0] == 1 && learns(a) {
		left = t.Squeeze(Value{left}, 0).tensor
	} else {
		right = t.Squeeze(Value{right}, 0).tensor
	}
	out := t.matmul(left, right)
	t.release(left, right)
	return out
}

// folds is should_fold for a matrix on the right: always if it needs a
// gradient, even if the left operand has to be copied, else if the leading
// dimensions of the left operand can be joined.
func folds(a, b *Tensor) bool {
	if learns(b) {
		return true
	}
	for i := range len(a.Shape) - 2 {
		if a.stride[i] != a.stride[i+1]*a.Shape[i+1] {
			return false
		}
	}
	return true
}

func (t *Torch) matmulBatched(a, b *Tensor) *Tensor {
	x, y := len(a.Shape)-2, len(b.Shape)-2
	batch := broadcast(&Tensor{Shape: a.Shape[:x]}, &Tensor{Shape: b.Shape[:y]})
	left := t.flattenBatch(a, batch)
	right := t.flattenBatch(b, batch)
	out := t.bmm(left, right)
	viewed := t.unsafeView(out, append(slices.Clone(batch), a.Shape[x], b.Shape[y+1]))
	t.release(out, right, left)
	return viewed
}

// flattenBatch expands an operand to the common batch and joins its
// dimensions.
func (t *Torch) flattenBatch(x *Tensor, batch []int64) *Tensor {
	matrix := x.Shape[len(x.Shape)-2:]
	expanded := t.expand(x, append(slices.Clone(batch), matrix...)...)
	flat := t.reshape(expanded, product(batch), matrix[0], matrix[1])
	t.release(expanded)
	return flat
}

// mmRecorded is mm with its node.
func (t *Torch) mmRecorded(a, b *Tensor) *Tensor {
	n := t.record("Mm", a, b)
	if n != nil {
		columns := columnMajor(b)
		rows := columnMajor(a)
		var left, right *Tensor
		if n.wants(0) {
			right = t.save(n, b)
		}
		if n.wants(1) {
			left = t.save(n, a)
		}
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(1) {
				out[1] = t.gradOfRight(g[0], left, columns)
			}
			if n.wants(0) {
				out[0] = t.gradOfLeft(g[0], right, rows)
			}
			return out
		}
	}
	out := t.mm(a, b)
	n.setOutputs(out)
	return out
}

// columnMajor reports whether a matrix is the transpose of a dense row-major
// one, as a weight.t() is.
func columnMajor(x *Tensor) bool { return x.stride[0] == 1 && x.stride[1] == x.Shape[0] }

// gradOfRight is mm_mat2_backward: the gradient of a column-major operand is
// column-major too (torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) gradOfRight(grad, a *Tensor, columns bool) *Tensor {
	if columns {
		return t.gradRight(a, grad)
	}
	at := t.transposePlain(a)
	out := t.mm(at, grad)
	t.release(at)
	return out
}

// gradOfLeft is mm_mat1_backward, likewise.
func (t *Torch) gradOfLeft(grad, b *Tensor, columns bool) *Tensor {
	if !columns {
		return t.gradLeft(grad, b)
	}
	gt := t.transposePlain(grad)
	out := t.mm(b, gt)
	back := t.transposePlain(out)
	t.release(out, gt)
	return back
}

// bmm is a product of batches of matrices.
func (t *Torch) bmm(a, b *Tensor) *Tensor {
	n := t.record("Bmm", a, b)
	if n != nil {
		var left, right *Tensor
		if n.wants(0) {
			right = t.save(n, b)
		}
		if n.wants(1) {
			left = t.save(n, a)
		}
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(1) {
				at := t.transposeBatch(left)
				out[1] = t.bmmPlain(at, g[0])
				t.release(at)
			}
			if n.wants(0) {
				bt := t.transposeBatch(right)
				out[0] = t.bmmPlain(g[0], bt)
				t.release(bt)
			}
			return out
		}
	}
	out := t.bmmPlain(a, b)
	n.setOutputs(out)
	return out
}

// bmmPlain is bmm outside the graph. Operands that are neither row- nor
// column-major are copied for the call, the right one first
// (bmm_out_cuda_impl, aten/src/ATen/native/cuda/Blas.cpp).
func (t *Torch) bmmPlain(a, b *Tensor) *Tensor {
	since := t.moment()
	out := t.empty(a.DType, a.Shape[0], a.Shape[1], b.Shape[2])
	t.product(since, a, b)
	right := t.forBatchedBlas(b)
	left := t.forBatchedBlas(a)
	t.blas()
	t.release(left, right)
	return out
}

// forBatchedBlas is prepare_batch_matrix_for_cublas.
func (t *Torch) forBatchedBlas(x *Tensor) *Tensor {
	rows, cols := x.Shape[1], x.Shape[2]
	fast, slow := x.stride[2], x.stride[1]
	switch {
	case fast == 1 && slow >= max(1, cols), slow == 1 && fast >= max(1, rows):
		return t.retain(x)
	case x.isContiguous() && fast != 0 && slow != 0:
		return t.retain(x)
	default:
		return t.empty(x.DType, x.Shape...)
	}
}

// transposeBatch returns a batch of matrices transposed, outside the graph.
func (t *Torch) transposeBatch(x *Tensor) *Tensor {
	shape, stride := t.cloneInts(x.Shape), t.cloneInts(x.stride)
	shape[1], shape[2] = shape[2], shape[1]
	stride[1], stride[2] = stride[2], stride[1]
	return t.alias(x, shape, stride)
}

// MatMul is torch.matmul(a, b), which autocast computes in its type.
func (t *Torch) MatMul(a, b X) Value {
	right := t.lower(read(b))
	left := t.lower(read(a))
	out := t.matmul(left, right)
	t.release(left, right)
	t.done(a, b)
	return Value{out}
}

// BMM is torch.bmm(a, b), likewise.
func (t *Torch) BMM(a, b X) Value {
	right := t.lower(read(b))
	left := t.lower(read(a))
	out := t.bmm(left, right)
	t.release(left, right)
	t.done(a, b)
	return Value{out}
}
