package torch

import "memorymark/internal/trace"

// GradScaler is torch.amp.GradScaler (torch/amp/grad_scaler.py), with its
// device's scalars.
type GradScaler struct {
	t             *Torch
	scale, growth *Tensor // from the first loss on
	found         *Tensor // found_inf_per_device, from unscale_ to update
}

// NewGradScaler makes a scaler, which allocates nothing.
func (t *Torch) NewGradScaler() *GradScaler { return &GradScaler{t: t} }

// Scale is scale(loss).
func (s *GradScaler) Scale(loss X) Value {
	if s.scale == nil {
		s.t.As(trace.OptimizerState, func() { s.scale, s.growth = s.t.empty(Float32), s.t.empty(Int32) })
	}
	return s.t.Mul(loss, Borrow(s.scale))
}

// Unscale is unscale_(optimizer): gradients are divided in place. The inverse is
// computed in double; found_inf is copied for each device.
func (s *GradScaler) Unscale() {
	t := s.t
	double := t.empty(Int64)
	reciprocal := t.empty(Int64)
	t.release(double)
	inverse := t.empty(Float32)
	t.release(reciprocal)
	found := t.empty(Float32)
	s.found = t.empty(Float32)
	t.release(t.empty(Float32), inverse, found) // the copy of the inverse first
}

// Step is step(optimizer) and update(). The fused kernel is passed found_inf.
func (s *GradScaler) Step(o *Optimizer) {
	t := s.t
	if s.found == nil {
		s.Unscale()
	}
	var found *Tensor
	if o.impl == Fused && o.kind.HasFused() {
		found = t.empty(Float32) // the sum over devices
	}
	o.Step()
	t.release(found)
	t.release(s.found)
	s.found = nil
}
