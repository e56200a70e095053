package torch

// This file is what becomes of the graph where a tensor changes in place
// (torch/csrc/autograd/variable.cpp).

// setHistory makes a tensor that an operator changed in place the output of its node.
// Where it is a view, its base is that output instead (rebase_history).
func (t *Torch) setHistory(x *Tensor, n *node) {
	if x.base == nil {
		t.setFunction(x, n)
		return
	}
	t.changePart(x, n)
	t.setFunction(x.base, n)
	t.setFunction(x, t.asStrided(x.base))
}

func (t *Torch) setFunction(x *Tensor, n *node) {
	old := x.fn
	n.setOutputs(x)
	if old != nil {
		t.releaseNode(old)
	}
}

// changePart makes of the node of a view's change one of its base: it copies the gradient, and
// the part of it that is the view's, for which it runs the change's own backward
// (CopySlices::apply, torch/csrc/autograd/functions/tensor.cpp).
func (t *Torch) changePart(view *Tensor, n *node) {
	if old := n.next[0].node; old != nil {
		t.releaseNode(old)
	}
	n.next[0] = t.edgeOf(view.base)
	backward := n.backward
	if gradient := n.gradient; gradient != nil {
		backward, n.gradient = func(g []*Tensor) []*Tensor { return []*Tensor{gradient(g[0])} }, nil
	}
	whole, stride, part := view.base.Shape, view.base.stride, view.Shape
	n.backward = func(g []*Tensor) []*Tensor {
		rest := t.emptyStrided(g[0].DType, whole, stride)
		slice := t.empty(g[0].DType, part...)
		out := backward([]*Tensor{slice})
		t.release(slice, out[0])
		if out[0] = rest; !n.wants(0) {
			t.release(rest)
			out[0] = nil
		}
		return out
	}
}

// asStrided is what made a view of a base that has changed: its gradient is one of the whole
// storage (as_strided_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) asStrided(base *Tensor) *node {
	n := t.record("AsStrided", base)
	whole, stride := base.Shape, base.stride
	n.gradient = func(g *Tensor) *Tensor { return t.emptyStrided(g.DType, whole, stride) }
	return n
}
