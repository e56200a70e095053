package torch

// cudnnAttention is _scaled_dot_product_cudnn_attention: seed and offset on
// the device whether there is dropout or not, the result laid out like the
// queries, statistics only for a backward, and a workspace of 256 bytes unless
// there is one query alone (aten/src/ATen/native/transformers/cuda/attention.cu,
// cudnn/MHA.cpp).
func (t *Torch) cudnnAttention(a *attention) *Tensor {
	b, h, s := a.q.Dim(0), a.q.Dim(1), a.q.Dim(2)
	seed, offset := t.empty(Int64), t.empty(Int64)
	out := t.likeQueries(a.q, a.v.Dim(3))
	var stats *Tensor
	if t.needsGrad(a.q, a.k, a.v) {
		stats = t.empty(Float32, b, h, s, 1)
	}
	if s > 1 {
		t.drop(t.allocate(256))
	}
	if n := t.record("ScaledDotProductCudnnAttention", a.q, a.k, a.v); n != nil {
		t.save(n, a.bias)
		k, q, v := t.save(n, a.k), t.save(n, a.q), t.save(n, a.v)
		t.save(n, stats)
		o := t.save(n, out)
		t.save(n, offset)
		t.save(n, seed)
		n.backward = func(g []*Tensor) []*Tensor { return t.cudnnBackward(g[0], q, k, v, o) }
		n.made(out)
	}
	t.release(stats, seed, offset)
	return out
}

// likeQueries is alloc_with_matching_layout (transformers/sdp_utils.h): values
// of another size are laid out in the order of the queries' strides.
func (t *Torch) likeQueries(q *Tensor, size int64) *Tensor {
	if q.Dim(3) == size {
		return t.emptyLike(q, q.DType)
	}
	shape := []int64{q.Dim(0), q.Dim(1), q.Dim(2), size}
	return t.emptyStrided(q.DType, shape, preservedStrides(&Tensor{Shape: shape, stride: q.stride}))
}

// cudnnBackward is _cudnn_attention_backward: the gradients laid out like what
// they are of, then cuDNN's workspace. Its size is the sum of the queries'
// gradient in float32, a float32 for every row, the gradients of keys and
// values for every head if heads share them, and 256 bytes (found by
// measuring; cuDNN is closed).
func (t *Torch) cudnnBackward(grad, q, k, v, out *Tensor) []*Tensor {
	dq, dk, dv := t.emptyLike(q, q.DType), t.emptyLike(k, k.DType), t.emptyLike(v, v.DType)
	grad = t.retain(grad)
	if grad.stride[3] != 1 {
		t.release(grad)
		grad = t.emptyLike(out, out.DType) // permute_to_matching_layout
	}
	b, h, s := q.Dim(0), q.Dim(1), q.Dim(2)
	size := 4*q.Numel() + 4*b*h*s + 256
	if h != k.Dim(1) {
		size += k.DType.Size() * b * h * k.Dim(2) * (k.Dim(3) + v.Dim(3))
	}
	t.drop(t.allocate(size))
	t.release(grad)
	return []*Tensor{dq, dk, dv}
}
