package torch

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
	out := t.empty(in.DType, in.Shape...)
	t.release(t.contiguousPlain(in))
	if n := t.record("LogSoftmax", in); n != nil {
		t.save(n, out)
		n.gradient = func(g *Tensor) *Tensor { return t.empty(in.DType, in.Shape...) }
		n.made(out)
	}
	return out
}

func (t *Torch) nllLoss(logp, labels *Tensor) *Tensor {
	loss, weight := t.empty(logp.DType), t.empty(logp.DType)
	if n := t.record("NllLoss", logp); n != nil {
		t.save(n, logp)
		t.save(n, labels)
		t.save(n, weight)
		n.gradient = func(g *Tensor) *Tensor { return t.empty(logp.DType, logp.Shape...) }
		n.made(loss)
	}
	t.release(weight)
	return loss
}
