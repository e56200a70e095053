package torch

import "slices"

// This file holds losses of two tensors, of which the mean is taken. They are on
// autocast's fp32 list.

// ElementLoss is mse_loss, l1_loss, smooth_l1_loss or binary_cross_entropy_with_logits:
// elements as they are, or their mean. Those of mse_loss and smooth_l1_loss are computed into a
// buffer of their own; the mean has memory for all of them, since its tensor is made before
// it is resized (aten/src/ATen/native/Loss.cpp, TORCH_META_FUNC(mse_loss)).
func (t *Torch) ElementLoss(name string, x, target X, mean bool) Value {
	in, to := t.upper(read(x)), t.upper(read(target))
	out := t.pointwise(resultType(in, to), in, to)
	switch {
	case mean && (name == "MseLoss" || name == "SmoothL1Loss"):
		elements := t.pointwise(out.DType, in, to)
		t.reduceScratch(elements, slices.Repeat([]bool{true}, len(elements.Shape)), 4)
		out.Shape, out.stride = nil, nil
		t.release(elements)
	case mean && name == "BinaryCrossEntropy": // resized, too (aten/src/ATen/native/cuda/Loss.cu)
		t.release(t.sum(out, allDims(out), false, out.DType))
		out.Shape, out.stride = nil, nil
	case mean:
		out = t.replace(out, t.sum(out, allDims(out), false, out.DType))
	}
	if n := t.record(name, in, to); n != nil {
		self, target := t.save(n, in), t.save(n, to)
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(0) {
				out[0] = t.pointwise(self.DType, self, target)
			}
			if n.wants(1) {
				out[1] = t.pointwise(self.DType, self, target)
			}
			return out
		}
		n.setOutputs(out)
	}
	t.release(to, in)
	t.done(x, target)
	return Value{out}
}

// LogSoftmax is torch.nn.functional.log_softmax of the last dimension; autocast computes it
// in float32.
func (t *Torch) LogSoftmax(x X, dtype DType) Value {
	in := t.retain(read(x))
	if dtype == NoDType && t.autocast != nil && in.DType.IsFloat() {
		dtype = Float32
	}
	if dtype != NoDType && dtype != in.DType {
		in = t.replace(in, t.to(in, dtype))
	}
	out := t.logSoftmax(in)
	t.release(in)
	t.done(x)
	return Value{out}
}

// NLL is torch.nn.functional.nll_loss.
func (t *Torch) NLL(x, target X) Value {
	in := t.upper(read(x))
	out := t.nllLoss(in, read(target))
	t.release(in)
	t.done(x, target)
	return Value{out}
}
