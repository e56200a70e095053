package torch

// LayerNorm is torch.nn.functional.layer_norm over the last dimension: the
// result, then mean and reciprocal deviation in float32
// (aten/src/ATen/native/cuda/layer_norm_kernel.cu).
func (t *Torch) LayerNorm(x X, m *LayerNorm) Value {
	in := t.upper(read(x)) // layer_norm is on autocast's fp32 list
	dense := t.contiguousPlain(in)
	out := t.empty(in.DType, in.Shape...)
	stats := t.copied(in.Shape)
	stats[len(stats)-1] = 1
	mean, rstd := t.empty(Float32, stats...), t.empty(Float32, stats...)
	t.release(dense)
	if n := t.record("NativeLayerNorm", in, m.Weight, m.Bias); n != nil {
		t.save(n, m.Bias)
		in := t.save(n, in)
		for _, x := range []*Tensor{m.Weight, mean, rstd} {
			t.save(n, x)
		}
		n.backward = func(g []*Tensor) []*Tensor { return t.layerNormBackward(n, g[0], in, m) }
		n.made(out)
	}
	t.release(mean, rstd, in)
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

func (t *Torch) layerNormBackward(n *node, grad, in *Tensor, m *LayerNorm) []*Tensor {
	input := t.contiguousPlain(in)
	out := t.lists.take(3)
	if n.wants(0) {
		out[0] = t.empty(in.DType, in.Shape...)
	}
	if n.wants(1) {
		out[1] = t.empty(m.Weight.DType, m.Weight.Shape...)
	}
	if n.wants(2) {
		out[2] = t.empty(m.Bias.DType, m.Bias.Shape...)
	}
	t.release(t.contiguousPlain(grad), input)
	return out
}
