package torch

import "slices"

// This file is torch.optim.Muon (torch/optim/_muon.py) with its companion
// AdamW. Muon takes only matrices, and its documentation leaves embeddings and
// vectors to AdamW:
//
//	muon = torch.optim.Muon(matrices)
//	adamw = torch.optim.AdamW(others)

// newtonSchulzSteps is DEFAULT_NS_STEPS.
const newtonSchulzSteps = 5

// splitMatrices leaves the matrices of hidden layers to the optimizer, and the
// other parameters to its companion.
func (o *Optimizer) splitMatrices() {
	var matrices, others []*Tensor
	for _, p := range o.t.parameters {
		if len(p.Shape) == 2 && !o.t.isEmbedding(p) && !o.t.isOutput(p) {
			matrices = append(matrices, p)
		} else {
			others = append(others, p)
		}
	}
	o.companion = o.t.NewOptimizer(OptimizerNamed(o.kind.Companion), o.impl)
	o.companion.take(others)
	o.take(matrices)
	o.impl = Loop // muon: "Foreach is not supported for Muon yet"
}

// take assigns parameters to the optimizer.
func (o *Optimizer) take(parameters []*Tensor) {
	o.parameters, o.groups = parameters, [][]*Tensor{parameters}
}

// isOutput reports whether a parameter is the weight of what
// get_output_embeddings() returns.
func (t *Torch) isOutput(p *Tensor) bool {
	return slices.ContainsFunc(t.linears, func(m *Linear) bool { return m.output && m.Weight == p })
}

// stepMuon is _init_group and _single_tensor_muon. The name update keeps the
// last parameter's until this one binds it.
func (o *Optimizer) stepMuon(params []*Tensor) {
	t := o.t
	o.stepMomentum(params) // zeros_like(p.grad): laid out as SGD's buffers are
	f := t.Enter()
	update := f.Let(Value{})
	for _, p := range params {
		update.Set(Value{t.emptyLike(p.grad, p.grad.DType)}) // grad.lerp(buf, momentum)
		update.Set(t.orthogonalize(update))
	}
	f.End()
}

// orthogonalize is _zeropower_via_newtonschulz: it iterates in bfloat16 on the
// matrix or, if it has more rows than columns, its transpose.
func (t *Torch) orthogonalize(grad X) Value {
	f := t.Enter(grad)
	high := read(grad).Shape[0] > read(grad).Shape[1]
	ortho := f.Let(t.To(grad, BFloat16))
	if high {
		ortho.Set(Value{t.transposePlain(ortho.tensor)})
	}
	norm := t.norm(ortho.tensor)
	clamped := t.empty(norm.DType)
	t.release(norm, clamped)
	gram, gramUpdate := f.Let(Value{}), f.Let(Value{})
	for range newtonSchulzSteps {
		gram.Set(Value{t.gram(ortho.tensor)})
		gramUpdate.Set(Value{t.mm(gram.tensor, gram.tensor)}) // addmm: a matrix that is added is copied into the result first
		ortho.Set(Value{t.mm(gramUpdate.tensor, ortho.tensor)})
	}
	if high {
		ortho.Set(Value{t.transposePlain(ortho.tensor)})
	}
	return f.Return(ortho)
}

// gram is x @ x.T.
func (t *Torch) gram(x *Tensor) *Tensor {
	xt := t.transposePlain(x)
	out := t.mm(x, xt)
	t.release(xt)
	return out
}
