package torch

import "memorymark/internal/trace"

// This file is what torch.distributed.pipelining does to tensors.

// Receive makes a buffer for a neighbour's tensor
// (torch/distributed/pipelining/stage.py, _make_tensor_from_meta). Its gradient is
// sent back.
func (t *Torch) Receive(dtype DType, requiresGrad bool, shape ...int64) *Tensor {
	var x *Tensor
	t.As(trace.Activation, func() { x = t.empty(dtype, shape...) })
	x.requiresGrad = requiresGrad
	return x
}

// BackwardFrom is torch.autograd.backward([output], grad_tensors=[grad]).
func (t *Torch) BackwardFrom(output X, grad *Tensor) {
	root := read(output)
	t.runGraph(root.fn, root.output, grad)
	t.done(output)
}

// TakeGrad removes and returns the gradient of a leaf (stage_backward,
// torch/distributed/pipelining/_backward.py).
func (t *Torch) TakeGrad(leaf *Tensor) Value {
	grad := leaf.grad
	leaf.grad = nil
	return Value{grad}
}
