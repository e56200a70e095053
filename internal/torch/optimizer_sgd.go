package torch

import "memorymark/internal/trace"

// stepMomentum is torch/optim/sgd.py with momentum and without weight decay:
// the first step keeps a copy of each gradient, laid out as the gradient is.
// The three implementations differ in kernels only.
func (o *Optimizer) stepMomentum(params []*Tensor) {
	for _, p := range params {
		if o.sgd[p] != nil {
			continue
		}
		o.t.inModule(p.owner, func() {
			o.t.As(trace.OptimizerState, func() { o.sgd[p] = o.t.emptyLike(p.grad, p.grad.DType) })
		})
	}
}
