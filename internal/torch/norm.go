package torch

import "memorymark/internal/steptime"

// LayerNorm is torch.nn.functional.layer_norm over the last dimension: the
// result, then mean and reciprocal deviation in float32
// (aten/src/ATen/native/cuda/layer_norm_kernel.cu).
func (t *Torch) LayerNorm(x X, m *LayerNorm) Value {
	// layer_norm is on autocast's fp32 list, with its weights: a model in bfloat16
	// has them cast at every use.
	bias := t.upper(m.Bias)
	weight := t.upper(m.Weight)
	in := t.upper(read(x))
	dense := t.contiguousPlain(in)
	since := t.moment()
	out := t.empty(in.DType, in.Shape...)
	stats := t.cloneInts(in.Shape)
	stats[len(stats)-1] = 1
	mean, rstd := t.empty(Float32, stats...), t.empty(Float32, stats...)
	t.noteFused(since, steptime.LayerNorm, in.DType, float64(2*in.bytes()))
	t.release(dense)
	if n := t.record("NativeLayerNorm", in, weight, bias); n != nil {
		bias := t.save(n, bias)
		in := t.save(n, in)
		weight := t.save(n, weight)
		for _, x := range []*Tensor{mean, rstd} {
			t.save(n, x)
		}
		n.backward = func(g []*Tensor) []*Tensor { return t.layerNormBackward(n, g[0], in, weight, bias) }
		n.setOutputs(out)
	}
	t.release(mean, rstd, in, weight, bias)
	t.done(x)
	return Value{out}
}

// contiguousInput is the tensor, or a contiguous copy that the caller alone
// refers to.
func (t *Torch) contiguousInput(x *Tensor) *Tensor {
	if x.isContiguous() {
		return t.retain(x)
	}
	return t.clone(x)
}

func (t *Torch) layerNormBackward(n *node, grad, in, weight, bias *Tensor) []*Tensor {
	input := t.contiguousPlain(in)
	out, since := t.lists.take(3), t.moment()
	if n.wants(0) {
		out[0] = t.empty(in.DType, in.Shape...)
	}
	if n.wants(1) {
		out[1] = t.empty(weight.DType, weight.Shape...)
	}
	if bias != nil && n.wants(2) {
		out[2] = t.empty(bias.DType, bias.Shape...)
	}
	t.noteFused(since, steptime.LayerNormBackward, in.DType, float64(3*in.bytes()))
	t.release(t.contiguousPlain(grad), input)
	return out
}

// FusedRMSNorm is torch.nn.functional.rms_norm over the last dimension, which is one kernel:
// the result, then the reciprocal root in float32 (aten/src/ATen/native/cuda/
// layer_norm_kernel.cu, _fused_rms_norm_cuda). It is on autocast's fp32 list.
func (t *Torch) FusedRMSNorm(x X, w *Tensor) Value {
	weight := t.upper(w)
	in := t.upper(read(x))
	dense := t.contiguousPlain(in)
	out := t.empty(in.DType, in.Shape...)
	stats := t.cloneInts(in.Shape)
	stats[len(stats)-1] = 1
	rstd := t.empty(Float32, stats...)
	t.release(dense)
	if n := t.record("FusedRmsNorm", in, weight); n != nil {
		in, weight := t.save(n, in), t.save(n, weight)
		t.save(n, rstd)
		n.backward = func(g []*Tensor) []*Tensor { return t.layerNormBackward(n, g[0], in, weight, nil)[:2] }
		n.setOutputs(out)
	}
	t.release(rstd, in, weight)
	t.done(x)
	return Value{out}
}
