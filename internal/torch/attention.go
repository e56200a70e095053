package torch

import "memorymark/internal/steptime"

// This file is torch.nn.functional.scaled_dot_product_attention: which kernel
// it picks (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp, with the
// cuDNN 9.19 of the CUDA 13 wheels) and what it does with its mask. Each kernel
// has a file of its own.

// attention is a call of scaled_dot_product_attention on [batch, heads,
// length, size] tensors.
type attention struct {
	q, k, v *Tensor
	bias    *Tensor // added to the scores, nil for none
	dropout float64
	causal  bool
	gqa     bool // fewer heads of keys and values are allowed
}

// Attention is scaled_dot_product_attention. The mask is nil, bool (true takes
// part), or a float to add. Autocast casts its arguments.
func (t *Torch) Attention(q, k, v, mask X, dropout float64, causal, gqa bool) Value {
	var m *Tensor
	if mask != nil {
		m = t.lower(read(mask))
	}
	a := &attention{dropout: dropout, causal: causal, gqa: gqa}
	a.v, a.k, a.q = t.lower(read(v)), t.lower(read(k)), t.lower(read(q))
	kernel, implementation := t.chooseAttention(a, m)
	a.bias = t.additiveMask(m, a.q.DType)
	since := t.moment()
	out := kernel(a)
	t.countAttention(since, implementation, a, out)
	t.release(a.bias, a.q, a.k, a.v, m)
	t.done(q, k, v)
	if mask != nil {
		t.done(mask)
	}
	return Value{out}
}

// composed stands for attention of plain operators.
const composed = -1

// countAttention notes the kernel of a fused implementation in place of its
// parts: two products of queries and keys, half of that if causal, and two and a
// half times that in backward, which recomputes the scores. The composed operators
// note their own.
func (t *Torch) countAttention(since, implementation int, a *attention, out *Tensor) {
	if implementation == composed {
		return
	}
	operations := float64(4 * a.q.Numel() * a.k.Dim(2))
	if a.causal {
		operations /= 2
	}
	bytes := float64(2*a.q.bytes() + a.k.bytes() + a.v.bytes())
	size := []float64{float64(implementation), float64(a.q.Dim(2)), float64(a.k.Dim(2)), float64(a.q.Dim(3)), float64(a.q.Dim(0) * a.q.Dim(1))}
	t.noteFused(since, steptime.Attention, a.q.DType, append([]float64{operations, bytes, steptime.Forward}, size...)...)
	n := out.fn
	if n == nil || n.backward == nil {
		return
	}
	backward, dtype := n.backward, a.q.DType
	n.backward = func(g []*Tensor) []*Tensor {
		since := t.moment()
		out := backward(g)
		t.noteFused(since, steptime.Attention, dtype, append([]float64{operations * 5 / 2, 2 * bytes, steptime.Backward}, size...)...)
		return out
	}
}

// chooseAttention is select_sdp_backend: cuDNN comes first on Hopper and data
// center Blackwell and not at all elsewhere, then flash, then efficient; the
// composed operators handle the rest.
func (t *Torch) chooseAttention(a *attention, mask *Tensor) (kernel func(*attention) *Tensor, implementation int) {
	preferred := !t.Version.Before(2, 11) && // it comes last in recordings of 2.6 and 2.8
		t.is(func(d Device) bool { return (d.Major == 9 || d.Major == 10) && (d.Minor == 0 || d.Minor == 3) })
	switch {
	case preferred && t.canUseCuDNN(a, mask):
		return t.cudnnAttention, steptime.CuDNN
	case t.canUseFlash(a, mask):
		return t.flashAttention, steptime.Flash
	case t.canUseEfficient(a, mask):
		return t.efficientAttention, steptime.Efficient
	default:
		return t.mathAttention, composed
	}
}

// canUseCuDNN is can_use_cudnn_attention.
func (t *Torch) canUseCuDNN(a *attention, mask *Tensor) bool {
	size := max(a.q.Dim(3), a.v.Dim(3))
	limit := int64(128)
	if t.is(Device.isHopper) {
		limit = 256
	}
	if a.q.Dim(3) == 192 && a.v.Dim(3) == 128 && t.is(Device.isBlackwell) {
		limit = 192
	}
	return t.halfKernels(a.q.DType) &&
		(mask == nil || !mask.requiresGrad && lastStrideIs1(mask)) &&
		a.sameHeads(a.gqa) && lastStrideIs1(a.q, a.k, a.v) &&
		size <= limit && a.q.Dim(3)%8 == 0 && a.v.Dim(3)%8 == 0 &&
		a.k.Dim(2) != 1 && (a.q.Dim(2) != 1 || a.dropout == 0) &&
		(t.Version.Before(2, 15) || a.dropout == 0) // as in recordings of 2.15
}

// canUseFlash is can_use_flash_attention. Sizes that are no multiples of 8 are
// padded.
func (t *Torch) canUseFlash(a *attention, mask *Tensor) bool {
	size := a.q.Dim(3)
	tooLarge := t.needsGrad(a.q, a.k, a.v) && size > 192 && (size <= 224 || a.dropout > 0) &&
		t.is(func(d Device) bool { return d.Major == 8 && d.Minor >= 6 || d.Major == 12 }) // sm86 to sm89, sm120
	return t.is(Device.isAmpere) && t.halfKernels(a.q.DType) && mask == nil &&
		size == a.k.Dim(3) && size == a.v.Dim(3) && size <= 256 && !tooLarge &&
		(!a.causal || a.q.Dim(2) == a.k.Dim(2)) &&
		a.sameHeads(a.gqa) && lastStrideIs1(a.q, a.k, a.v)
}

// canUseEfficient is can_use_mem_efficient_attention, which does not support
// grouped heads.
func (t *Torch) canUseEfficient(a *attention, mask *Tensor) bool {
	align := int64(1) // minimum_gemm_alignment
	switch {
	case a.q.DType.IsHalf() && t.is(Device.isVolta):
		align = 8
	case t.is(Device.isAmpere):
		align = 4
	}
	return (a.q.DType != BFloat16 || t.is(Device.isAmpere)) &&
		a.q.Dim(3) == a.k.Dim(3) && a.q.Dim(3)%align == 0 && a.v.Dim(3)%align == 0 &&
		a.sameHeads(a.gqa && !t.Version.Before(2, 15)) && lastStrideIs1(a.q, a.k, a.v) && (mask == nil || lastStrideIs1(mask))
}

// halfKernels is check_dtypes_low_precision.
func (t *Torch) halfKernels(d DType) bool {
	return d == Float16 || d == BFloat16 && t.is(Device.isAmpere)
}

// sameHeads is check_batch_size_and_num_heads_dense.
func (a *attention) sameHeads(groups bool) bool {
	h, hk, hv := a.q.Dim(1), a.k.Dim(1), a.v.Dim(1)
	if groups {
		return h%hk == 0 && h%hv == 0
	}
	return hk == h && hv == h
}

func lastStrideIs1(tensors ...*Tensor) bool {
	for _, x := range tensors {
		if x.stride[len(x.stride)-1] != 1 {
			return false
		}
	}
	return true
}

// additiveMask is convert_boolean_attn_mask: where(mask, 0, -inf) in the type
// of the queries, newly allocated for every call.
func (t *Torch) additiveMask(mask *Tensor, dtype DType) *Tensor {
	switch {
	case mask == nil:
		return nil
	case mask.DType != Bool:
		return t.retain(mask)
	}
	infinity, zero := t.empty(dtype), t.empty(dtype)
	out := t.pointwise(dtype, mask, zero, infinity)
	t.release(zero, infinity)
	return out
}

// heads makes a [batch, heads, length, size] tensor in the memory order of
// projections.
func (t *Torch) heads(b, h, s, d int64, dtype DType) *Tensor {
	return t.emptyStrided(dtype, []int64{b, h, s, d}, []int64{s * h * d, d, h * d, 1})
}
