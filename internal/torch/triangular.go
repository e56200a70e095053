package torch

import "slices"

// SolveTriangular is torch.linalg.solve_triangular(a, b): a system of equations for each
// matrix of a batch. The gradient of b is a system of the transposed matrices, that of a the
// triangle of its product with the result (linalg_solve_triangular_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) SolveTriangular(a, b X) Value {
	matrix, in := read(a), read(b)
	n := t.record("LinalgSolveTriangular", matrix, in)
	out := t.triangular(matrix, in)
	if n != nil {
		self, result := t.save(n, matrix), t.save(n, out)
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			turned := t.transposeLast(self)
			ofB := t.triangular(turned, g[0])
			if n.wants(0) {
				right := t.transposeLast(result)
				product := t.matmul(ofB, right)
				negative := t.pointwise(product.DType, product)
				out[0] = t.empty(negative.DType, negative.Shape...)
				t.release(negative, product, right)
			}
			if n.wants(1) {
				out[1] = t.retain(ofB)
			}
			t.release(ofB, turned)
			return out
		}
		n.setOutputs(out)
	}
	t.done(a, b)
	return Value{out}
}

// transposeLast is x.mT outside the graph.
func (t *Torch) transposeLast(x *Tensor) *Tensor {
	n := len(x.Shape)
	shape, stride := t.cloneInts(x.Shape), t.cloneInts(x.stride)
	shape[n-1], shape[n-2] = shape[n-2], shape[n-1]
	stride[n-1], stride[n-2] = stride[n-2], stride[n-1]
	return t.alias(x, shape, stride)
}

// triangular is the result, whose matrices are in column-major order
// (aten/src/ATen/native/BatchLinearAlgebra.cpp, linalg_solve_triangular_out).
func (t *Torch) triangular(a, b *Tensor) *Tensor {
	n := len(b.Shape)
	batch := broadcast(&Tensor{Shape: a.Shape[:len(a.Shape)-2]}, &Tensor{Shape: b.Shape[:n-2]})
	shape := append(slices.Clone(batch), b.Shape[n-2:]...)
	turned := slices.Clone(shape)
	turned[len(turned)-1], turned[len(turned)-2] = turned[len(turned)-2], turned[len(turned)-1]
	stride := contiguousStrides(turned)
	stride[len(stride)-1], stride[len(stride)-2] = stride[len(stride)-2], stride[len(stride)-1]
	return t.emptyStrided(b.DType, shape, stride)
}
