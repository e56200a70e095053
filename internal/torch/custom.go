package torch

// Custom runs a torch.autograd.Function: its forward without a graph, whose inputs lead to a
// node of its own (torch/csrc/autograd/python_function.cpp, THPFunction_apply). What it keeps
// in addition to the tensors that it saves is freed with the node.
func (t *Torch) Custom(name string, inputs []*Tensor, forward func() (outputs, saved, kept []*Tensor), backward func(saved, grads []*Tensor) []*Tensor) {
	n := t.record(name, inputs...)
	var outputs, saved, kept []*Tensor
	t.NoGrad(func() { outputs, saved, kept = forward() })
	if n == nil {
		return
	}
	held := make([]*Tensor, len(saved))
	for i, x := range saved {
		held[i] = t.save(n, x)
	}
	for _, x := range kept {
		n.kept = append(n.kept, t.retain(x))
	}
	n.backward = func(g []*Tensor) []*Tensor { return backward(held, g) }
	n.setOutputs(outputs...)
}
