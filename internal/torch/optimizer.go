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
// its first step.
type Optimizer struct {
	t    *Torch
	kind OptimizerKind
	impl Impl
}

// NewOptimizer makes an optimizer, which allocates nothing.
func (t *Torch) NewOptimizer(kind OptimizerKind, impl Impl) *Optimizer {
	return &Optimizer{t: t, kind: kind, impl: impl}
}

// Step is optimizer.step().
func (o *Optimizer) Step() {
	switch o.kind {
	case NoOptimizer, SGD:
	default:
		panic("torch: this optimizer is not written yet")
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

// ClipGradNorm is torch.nn.utils.clip_grad_norm_.
func (t *Torch) ClipGradNorm() { panic("torch: clipping is not written yet") }

// Input makes a tensor of a batch.
func (t *Torch) Input(dtype DType, shape ...int64) *Tensor {
	var x *Tensor
	t.As(trace.Input, func() { x = t.empty(dtype, shape...) })
	return x
}
