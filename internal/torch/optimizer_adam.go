package torch

import "memorymark/internal/trace"

// This file is torch/optim/adam.py, of which AdamW is a subclass, without
// amsgrad, maximize and capturable. AdamW's weight decay works in place, and Adam's on
// copies of the gradients.

// adamState is an optimizer's state of a parameter. The step counter is on the
// CPU, except for the fused kernel.
type adamState struct {
	step, average, square *Tensor
}

func (o *Optimizer) stepAdam(params []*Tensor) {
	for _, p := range params {
		o.initAdam(p)
	}
	switch o.impl {
	case Foreach:
		o.foreachAdam(params)
	case Loop:
		o.loopAdam(params)
	case Fused: // everything happens in one kernel
	}
}

// initAdam makes the state of a parameter once (_init_group).
func (o *Optimizer) initAdam(p *Tensor) {
	if _, ok := o.adam[p]; ok {
		return
	}
	var s adamState
	o.t.inModule(p.owner, func() {
		o.t.As(trace.OptimizerState, func() {
			if o.impl == Fused {
				s.step = o.t.empty(Float32)
			}
			s.average = o.t.emptyLike(p, p.DType)
			s.square = o.t.emptyLike(p, p.DType)
		})
	})
	o.adam[p] = s
}

// foreachAdam is _multi_tensor_adam: the roots of all squares exist at once. A
// group's list keeps its name until the next group's is made.
func (o *Optimizer) foreachAdam(params []*Tensor) {
	o.dropDecayed() // del device_grads
	var roots []*Tensor
	for _, group := range byDType(params) {
		old := roots
		roots = o.t.lists.take(len(group))[:0]
		for _, p := range group {
			o.t.inModule(p.owner, func() { roots = append(roots, o.t.emptyLike(o.adam[p].square, p.DType)) })
		}
		o.t.releaseList(old)
	}
	o.t.releaseList(roots)
}

// loopAdam is _single_tensor_adam: the denominator is the corrected root, and
// keeps its name until the next parameter's is made.
func (o *Optimizer) loopAdam(params []*Tensor) {
	var denominator *Tensor
	for _, p := range params {
		root := o.t.emptyLike(o.adam[p].square, p.DType)
		corrected := o.t.emptyLike(root, p.DType)
		o.t.release(root, denominator)
		denominator = corrected
	}
	o.t.release(denominator)
}
