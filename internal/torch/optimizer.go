package torch

import "memorymark/internal/trace"

// OptimizerKind is a class of torch.optim.
type OptimizerKind int

// The optimizers.
const (
	NoOptimizer OptimizerKind = iota
	AdamW
	Adam
	SGD
	SGDMomentum
)

// optimizerClasses are the names that PyTorch annotates steps with.
var optimizerClasses = map[OptimizerKind]string{AdamW: "AdamW", Adam: "Adam", SGD: "SGD", SGDMomentum: "SGD"}

// Impl is how an optimizer computes its step.
type Impl int

// The implementations: all parameters in one call with temporaries for all of
// them, one kernel without temporaries, or one parameter after the other.
const (
	Foreach Impl = iota
	Fused
	Loop
)

// Optimizer is a torch.optim optimizer of all parameters. Its state appears in
// its first step, for each parameter that has a gradient.
type Optimizer struct {
	t    *Torch
	kind OptimizerKind
	impl Impl
	adam map[*Tensor]*adamState
	sgd  map[*Tensor]*Tensor // momentum buffers
}

// NewOptimizer makes an optimizer, which allocates nothing.
func (t *Torch) NewOptimizer(kind OptimizerKind, impl Impl) *Optimizer {
	return &Optimizer{t: t, kind: kind, impl: impl, adam: map[*Tensor]*adamState{}, sgd: map[*Tensor]*Tensor{}}
}

// Step is optimizer.step(), annotated as PyTorch does it
// (torch/optim/optimizer.py, profile_hook_step).
func (o *Optimizer) Step() {
	if o.kind == NoOptimizer {
		return
	}
	class := optimizerClasses[o.kind]
	name := "Optimizer.step#" + class + ".step"
	o.t.Mark(name, false)
	o.t.NoGrad(func() {
		switch o.kind {
		case AdamW, Adam:
			o.stepAdam()
		case SGDMomentum:
			o.stepMomentum()
		case SGD, NoOptimizer: // parameters are updated in place
		}
	})
	o.countWork()
	o.t.Mark(name, true)
}

// countWork counts what a step writes in place: Adam goes over its tensors in
// seven kernels (torch/optim/adam.py, _multi_tensor_adam), fused in one that
// writes three of them; SGD writes each once or twice. The multi-tensor kernels
// take some hundred parameters at a time.
func (o *Optimizer) countWork() {
	passes, written := 1, 1
	switch {
	case o.kind == SGDMomentum:
		passes, written = 2, 2
	case o.kind != SGD && o.impl == Fused:
		passes, written = 1, 3
	case o.kind != SGD:
		passes, written = 7, 7
	}
	const atOnce = 100
	trained := o.t.trained()
	launches := passes * (1 + len(trained)/atOnce)
	if o.impl == Loop {
		launches = passes * len(trained)
	}
	o.t.work.Kernels += launches
	for _, p := range trained {
		o.t.work.Bytes += float64(int64(written) * p.Numel() * p.DType.Size())
	}
}

// ZeroGrad is optimizer.zero_grad(set_to_none=True).
func (o *Optimizer) ZeroGrad() {
	if o.kind == NoOptimizer {
		o.t.ZeroGrad()
		return
	}
	name := "Optimizer.zero_grad#" + optimizerClasses[o.kind] + ".zero_grad"
	o.t.Mark(name, false)
	o.t.ZeroGrad()
	o.t.Mark(name, true)
}

// trained are the parameters that have gradients.
func (t *Torch) trained() []*Tensor {
	var out []*Tensor
	for _, p := range t.parameters {
		if p.grad != nil {
			out = append(out, p)
		}
	}
	return out
}

// byDType groups tensors as the foreach functions do
// (_group_tensors_by_device_and_dtype), in the order of first appearance.
func byDType(tensors []*Tensor) [][]*Tensor {
	var groups [][]*Tensor
	at := map[DType]int{}
	for _, x := range tensors {
		i, ok := at[x.DType]
		if !ok {
			i = len(groups)
			at[x.DType] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], x)
	}
	return groups
}

// releaseList drops a Python list of tensors, which goes from its end.
func (t *Torch) releaseList(list []*Tensor) {
	for i := len(list) - 1; i >= 0; i-- {
		t.release(list[i])
	}
}

// ZeroGrad is zero_grad(set_to_none=True): gradients go in the order of the
// parameters.
func (t *Torch) ZeroGrad() {
	for _, p := range t.parameters {
		if p.grad != nil {
			t.release(p.grad)
			p.grad = nil
		}
	}
}

// Input makes a tensor of a batch.
func (t *Torch) Input(dtype DType, shape ...int64) *Tensor {
	var x *Tensor
	t.As(trace.Input, func() { x = t.empty(dtype, shape...) })
	return x
}
