package torch

// cudnnAttention is _scaled_dot_product_cudnn_attention: seed and offset on
// the device whether there is dropout or not, the result laid out like the
// queries, statistics only for a backward, and cuDNN's workspace
// (aten/src/ATen/native/transformers/cuda/attention.cu, cudnn/MHA.cpp).
func (t *Torch) cudnnAttention(a *attention) *Tensor {
	b, h, s := a.q.Dim(0), a.q.Dim(1), a.q.Dim(2)
	seed, offset := t.empty(Int64), t.empty(Int64)
	out := t.likeQueries(a.q, a.v.Dim(3))
	var stats *Tensor
	if t.needsGrad(a.q, a.k, a.v) {
		stats = t.empty(Float32, b, h, s, 1)
	}
	if size := t.cudnnForwardWorkspace(a); size > 0 {
		t.drop(t.allocate(size))
	}
	if n := t.record("ScaledDotProductCudnnAttention", a.q, a.k, a.v); n != nil {
		t.save(n, a.bias)
		k, q, v := t.save(n, a.k), t.save(n, a.q), t.save(n, a.v)
		t.save(n, stats)
		o := t.save(n, out)
		t.save(n, offset)
		t.save(n, seed)
		dropout := a.dropout
		n.backward = func(g []*Tensor) []*Tensor {
			return t.cudnnBackward(g[0], &attention{q: q, k: k, v: v, dropout: dropout}, o)
		}
		n.setOutputs(out)
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

// cudnnForwardWorkspace is the workspace of a forward in cuDNN 9.19, whose
// source is closed. By recordings, Hopper needs 256 bytes unless there is a
// single query. By cuDNN's plans for a described B200, Blackwell needs only a
// bit for every score that dropout may drop.
func (t *Torch) cudnnForwardWorkspace(a *attention) int64 {
	switch {
	case t.is(Device.isBlackwell):
		return a.droppedBits()
	case a.q.Dim(2) > 1:
		return 256
	}
	return 0
}

// droppedBits is the mask of dropout in tiles of 128 × 128, 0 without dropout.
func (a *attention) droppedBits() int64 {
	if a.dropout == 0 {
		return 0
	}
	return a.q.Dim(0)*a.q.Dim(1)*roundUp(a.q.Dim(2), 128)*roundUp(a.k.Dim(2), 128)/8 + 128
}

// cudnnBackward is _cudnn_attention_backward: each gradient laid out like its
// tensor, then cuDNN's workspace.
func (t *Torch) cudnnBackward(grad *Tensor, a *attention, out *Tensor) []*Tensor {
	dq, dk, dv := t.emptyLike(a.q, a.q.DType), t.emptyLike(a.k, a.k.DType), t.emptyLike(a.v, a.v.DType)
	grad = t.retain(grad)
	if grad.stride[3] != 1 {
		t.release(grad)
		grad = t.emptyLike(out, out.DType) // permute_to_matching_layout
	}
	t.drop(t.allocate(t.cudnnBackwardWorkspace(a)))
	t.release(grad)
	return []*Tensor{dq, dk, dv}
}

// cudnnBackwardWorkspace is the sum of the queries' gradient in float32, a
// float32 for every row, and the gradients of keys and values for every head if
// heads share them. Hopper adds 256 bytes (found by measuring). Blackwell, by
// cuDNN's plans, has the queries' gradient twice where there are at most 128 of
// them and no dropout, the second in rows of 8.
func (t *Torch) cudnnBackwardWorkspace(a *attention) int64 {
	b, h, s := a.q.Dim(0), a.q.Dim(1), a.q.Dim(2)
	size := 4*a.q.Numel() + 4*b*h*s
	shared := h != a.k.Dim(1)
	if shared {
		size += a.k.DType.Size() * b * h * a.k.Dim(2) * (a.k.Dim(3) + a.v.Dim(3))
	}
	switch {
	case !t.is(Device.isBlackwell):
		return size + 256
	case a.dropout > 0:
		return size + a.droppedBits()
	case s <= 128:
		return size + 4*b*h*roundUp(s, 8)*a.q.Dim(3) + 128
	case shared:
		return size + 128
	}
	return size
}

func roundUp(n, to int64) int64 { return (n + to - 1) / to * to }
