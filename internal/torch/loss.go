package torch

import "memorymark/internal/steptime"

// CrossEntropy is torch.nn.functional.cross_entropy with class indices:
// log_softmax, then nll_loss with its total weight
// (aten/src/ATen/native/LossNLL.cpp).
func (t *Torch) CrossEntropy(logits X, target X) Value {
	in, labels := read(logits), read(target)
	logp := t.logSoftmax(in) // is given its input's type, which autocast respects
	cast := t.upper(logp)    // nll_loss is on autocast's fp32 list
	loss := t.nllLoss(cast, labels)
	t.release(cast, logp)
	t.done(logits, target)
	return Value{loss}
}

func (t *Torch) logSoftmax(in *Tensor) *Tensor {
	since := t.moment()
	out := t.empty(in.DType, in.Shape...)
	t.noteFused(since, steptime.LogSoftmax, in.DType, float64(2*in.bytes()))
	t.release(t.contiguousPlain(in))
	if n := t.record("LogSoftmax", in); n != nil {
		t.save(n, out)
		n.gradient = func(g *Tensor) *Tensor {
			since := t.moment()
			grad := t.empty(in.DType, in.Shape...)
			t.noteFused(since, steptime.LogSoftmaxBackward, in.DType, float64(3*in.bytes()))
			return grad
		}
		n.setOutputs(out)
	}
	return out
}

func (t *Torch) nllLoss(logp, labels *Tensor) *Tensor {
	since := t.moment()
	loss, weight := t.empty(logp.DType), t.empty(logp.DType)
	t.noteFused(since, steptime.NLLLoss, logp.DType, float64(labels.bytes()))
	if n := t.record("NllLoss", logp); n != nil {
		t.save(n, logp)
		t.save(n, labels)
		t.save(n, weight)
		n.gradient = func(g *Tensor) *Tensor {
			since := t.moment()
			grad := t.empty(logp.DType, logp.Shape...)
			t.noteFused(since, steptime.Fill, logp.DType, float64(logp.bytes()))
			t.kernel(steptime.NLLLoss, logp.DType, float64(labels.bytes()))
			return grad
		}
		n.setOutputs(loss)
	}
	t.release(weight)
	return loss
}
