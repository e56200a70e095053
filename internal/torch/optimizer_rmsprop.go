package torch

import "memorymark/internal/trace"

// stepRMSprop is torch/optim/rmsprop.py without momentum, centering and weight
// decay: the average of squares is the state, and its roots are temporaries, as
// Adam's are.
func (o *Optimizer) stepRMSprop(params []*Tensor) {
	t := o.t
	for _, p := range params {
		if o.squares[p] == nil {
			t.inModule(p.owner, func() {
				t.As(trace.OptimizerState, func() { o.squares[p] = t.emptyLike(p, p.DType) })
			})
		}
	}
	root := func(p *Tensor) *Tensor { return t.emptyLike(o.squares[p], p.DType) }
	if o.impl == Loop { // the name is the last parameter's until this one binds it
		var average *Tensor
		for _, p := range params {
			next := root(p)
			t.release(average)
			average = next
		}
		t.release(average)
		return
	}
	var averages []*Tensor
	for _, group := range byDType(params) {
		next := mapTensors(group, root)
		t.releaseList(averages)
		averages = next
	}
	t.releaseList(averages)
}
