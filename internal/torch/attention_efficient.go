package torch

import "slices"

// This file is the memory-efficient attention of xFormers as PyTorch carries
// it (aten/src/ATen/native/transformers/cuda, mem_eff_attention).

// efficientAttention is _scaled_dot_product_efficient_attention: the result in
// [batch, length, heads, size] memory and, for a backward, the logarithms of
// the sums, whose rows are padded to 32. Seeds are on the CPU.
func (t *Torch) efficientAttention(a *attention) *Tensor {
	t.prepareBias(a)
	var seeds []*Tensor
	if a.dropout == 0 && !t.Version.Before(2, 15) { // as in recordings of 2.15
		seeds = []*Tensor{t.empty(Int64), t.empty(Int64)}
	}
	b, h, s, d := a.q.Dim(0), a.q.Dim(1), a.q.Dim(2), a.v.Dim(3)
	out := t.heads(b, h, s, d, a.q.DType)
	// should_compute_logsumexp does not ask for the bias.
	rows := int64(0)
	if t.needsGrad(a.q, a.k, a.v) {
		rows = divUp(s, 32) * 32
	}
	sums := t.empty(Float32, b, h, rows)
	if a.q.DType.IsHalf() && max(a.q.Dim(3), d) > 128 {
		t.release(t.empty(Float32, b, s, h, d)) // kNeedsOutputAccumulatorBuffer
	}
	if n := t.record("ScaledDotProductEfficientAttention", a.q, a.k, a.v, a.bias); n != nil {
		saved := *a
		saved.bias = t.save(n, a.bias)
		saved.k, saved.q, saved.v = t.save(n, a.k), t.save(n, a.q), t.save(n, a.v)
		t.save(n, sums)
		t.save(n, out)
		for _, x := range slices.Backward(seeds) { // the offset is freed first
			t.save(n, x)
		}
		n.backward = func(g []*Tensor) []*Tensor { return t.efficientBackward(n, g[0], &saved) }
		n.setOutputs(out)
	}
	t.release(sums)
	t.release(seeds...)
	return out
}

// prepareBias is preprocess_mask, whose result replaces the bias: a bias with
// strides that are not multiples of 8 is copied with padded rows, then
// broadcast to all scores.
func (t *Torch) prepareBias(a *attention) {
	if a.bias == nil {
		return
	}
	bias := a.bias
	if !alignedTo8(bias) {
		length := bias.Dim(-1)
		padded := t.padLast(bias, 8-length%8)
		bias = t.replace(bias, t.slice(padded, -1, 0, length))
		t.release(padded)
	}
	a.bias = t.replace(bias, t.expand(bias, a.q.Dim(0), a.q.Dim(1), a.q.Dim(2), a.k.Dim(2)))
}

// alignedTo8 is aligned_tensor.
func alignedTo8(x *Tensor) bool {
	for _, s := range x.stride[:len(x.stride)-1] {
		if s%8 != 0 {
			return false
		}
	}
	return lastStrideIs1(x)
}

// efficientBackward is _efficient_attention_backward: the gradients, with rows
// of the bias's padded to 16, then the row sums of gradient times result, then
// the kernel's workspace.
func (t *Torch) efficientBackward(n *node, grad *Tensor, a *attention) []*Tensor {
	dense := t.contiguousHeads(grad)
	gradients := []*Tensor{
		t.heads(a.q.Dim(0), a.q.Dim(1), a.q.Dim(2), a.q.Dim(3), a.q.DType),
		t.heads(a.k.Dim(0), a.k.Dim(1), a.k.Dim(2), a.k.Dim(3), a.k.DType),
		t.heads(a.v.Dim(0), a.v.Dim(1), a.v.Dim(2), a.v.Dim(3), a.v.DType),
		nil,
	}
	if n.wants(3) {
		s := a.bias.Shape
		rows := t.empty(a.bias.DType, s[0], s[1], s[2], divUp(s[3], 16)*16)
		gradients[3] = t.alias(rows, s, rows.stride)
		t.release(rows)
	}
	var shared []*Tensor // of keys and values that several heads share, their gradients by head (2.15)
	if a.q.Dim(1) != a.k.Dim(1) {
		shared = []*Tensor{
			t.heads(a.k.Dim(0), a.q.Dim(1), a.k.Dim(2), a.k.Dim(3), a.k.DType),
			t.heads(a.v.Dim(0), a.q.Dim(1), a.v.Dim(2), a.v.Dim(3), a.v.DType),
		}
	}
	kernel := t.efficientKernel(a)
	delta := t.efficientDelta(dense, a.q, kernel)
	workspace := t.allocate(kernel.workspace(a))
	t.release(delta)
	t.drop(workspace)
	slices.Reverse(shared)
	t.release(append(shared, dense)...)
	return gradients
}

// efficientDelta is the row sums of gradient times result. Kernels for half
// types compute them internally, except some of the V100's
// (kKernelComputesDelta); float32 needs a product of full size.
func (t *Torch) efficientDelta(grad, q *Tensor, kernel efficientBlocks) *Tensor {
	b, h, s := q.Dim(0), q.Dim(1), q.Dim(2)
	v100 := func(d Device) bool { return d.Major == 7 && d.Minor == 0 }
	if q.DType.IsHalf() && (!kernel.staged || !t.is(v100)) {
		return t.empty(Float32, b, h, s)
	}
	product := t.empty(Float32, grad.Shape...)
	sums := t.sum(product, []int{-1}, false, Float32)
	flipped := t.alias(sums, []int64{b, h, s}, []int64{sums.stride[0], sums.stride[2], sums.stride[1]})
	delta := t.contiguousInput(flipped)
	t.release(flipped, sums, product)
	return delta
}

// efficientBlocks is a backward kernel of mem_eff_attention: how many queries
// and keys a block handles, and whether the gradients of keys and values are
// staged in global memory.
type efficientBlocks struct {
	queries, keys int64
	staged        bool
}

// efficientKernel picks the first kernel that fits (kernels/cutlassB.h): the
// large blocks need more shared memory than the smaller cards of a generation
// have.
func (t *Torch) efficientKernel(a *attention) efficientBlocks {
	size, half := max(a.q.Dim(3), a.v.Dim(3)), a.q.DType.IsHalf()
	small := func(d Device) bool { return d.Major == 8 && (d.Minor == 6 || d.Minor == 9) }
	large := func(d Device) bool {
		return d.Major == 8 && (d.Minor == 0 || d.Minor == 7) || d.Major == 9 || d.Major == 10
	}
	t4 := func(d Device) bool { return d.Major == 7 && d.Minor == 5 }
	sinceT4 := func(d Device) bool { return d.Major > 7 || t4(d) }
	switch {
	case size <= 64:
		return efficientBlocks{64, 64, false}
	case size <= 96 && half && a.dropout == 0 && t.is(small):
		return efficientBlocks{128, 64, false}
	case size <= 128 && half && t.is(large):
		return efficientBlocks{128, 128, false}
	case size <= 128 && half && t.is(t4):
		return efficientBlocks{128, 64, false}
	case t.is(large) || size > 128 && half && t.is(sinceT4):
		return efficientBlocks{128, 64, half}
	default:
		return efficientBlocks{64, 64, half}
	}
}

// workspace is workspace_size (kernel_backward.h): tiles of the queries'
// gradient with a lock each, and the staged gradients of keys and values for
// every split of the keys.
func (e efficientBlocks) workspace(a *attention) int64 {
	b, h := a.q.Dim(0), a.q.Dim(1)
	splits := divUp(a.k.Dim(2), e.keys)
	if b*h >= 256 && a.k.Dim(2) <= 2*e.keys {
		splits = 1
	}
	var staged int64
	if e.staged {
		splits = max(min(splits, 200/(b*h)), 1)
		for _, size := range []int64{a.k.Dim(3), a.v.Dim(3)} {
			staged += splits * e.keys * divUp(size, e.queries) * e.queries
		}
	}
	tiles := divUp(a.q.Dim(2), e.queries) * divUp(a.q.Dim(3), e.keys)
	elements := staged + tiles*(4+e.queries*e.keys)
	return b * h * divUp(elements, 4) * 4 * 4
}
