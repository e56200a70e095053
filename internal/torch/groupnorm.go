package torch

// GroupNorm is torch.nn.functional.group_norm: the result, mean and reciprocal deviation
// of each group, and for the time of the call a scale and a shift of each channel
// (aten/src/ATen/native/cuda/group_norm_kernel.cu). It is on autocast's fp32 list.
func (t *Torch) GroupNorm(x X, groups int64, weight, bias *Tensor) Value {
	b, w := t.upper(bias), t.upper(weight)
	in := t.upper(read(x))
	n, channels := in.Shape[0], in.Shape[1]
	last := in.looksChannelsLast()
	dense := t.contiguousImage(in, last)
	out := t.emptyImage(in.DType, last, in.Shape...)
	mean, rstd := t.empty(in.DType, n, groups), t.empty(in.DType, n, groups)
	pixels := in.Numel() / max(n*channels, 1)
	if pixels > 1 && (w != nil || b != nil) {
		scale, shift := t.empty(Float32, n, channels), t.empty(Float32, n, channels)
		t.release(shift, scale)
	}
	t.release(dense)
	if node := t.record("NativeGroupNorm", in, w, b); node != nil {
		in, w := t.save(node, in), t.save(node, w)
		t.save(node, mean)
		t.save(node, rstd)
		node.backward = func(g []*Tensor) []*Tensor { return t.groupNormBackward(node, g[0], in, w, groups) }
		node.setOutputs(out)
	}
	t.release(rstd, mean, in, w, b)
	t.done(x)
	return Value{out}
}

// groupNormBackward sums products of each channel first (GroupNormBackwardKernelImplInternal).
func (t *Torch) groupNormBackward(node *node, grad, in, weight *Tensor, groups int64) []*Tensor {
	n, channels := in.Shape[0], in.Shape[1]
	last := in.looksChannelsLast()
	dense := t.contiguousImage(grad, last)
	out := t.lists.take(3)
	if node.wants(0) {
		out[0] = t.emptyImage(in.DType, last, in.Shape...)
	}
	if node.wants(1) {
		out[1] = t.empty(weight.DType, channels)
	}
	if node.wants(2) {
		out[2] = t.empty(in.DType, channels)
	}
	if pixels := in.Numel() / max(n*channels, 1); pixels > 1 {
		ds, db := t.empty(Float32, n, channels), t.empty(Float32, n, channels)
		if node.wants(0) {
			c2, c3 := t.empty(Float32, n, groups), t.empty(Float32, n, groups)
			var c1 *Tensor
			if weight != nil {
				c1 = t.empty(Float32, n, channels)
			}
			t.release(c3, c2, c1)
		}
		t.release(db, ds)
	}
	t.release(dense)
	return out
}
