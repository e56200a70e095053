package torch

import "slices"

// Backward is loss.backward(): it runs the graph of a scalar and leaves
// gradients in the leaves (torch/csrc/autograd/engine.cpp).
func (t *Torch) Backward(loss X) {
	root := read(loss)
	// torch/autograd/__init__.py _make_grads: ones_like(loss).
	ones := t.empty(root.DType)
	t.runGraph(root.fn, root.output, ones)
	t.release(ones)
	t.done(loss)
}

func (t *Torch) runGraph(root *node, input int, grad *Tensor) {
	thread, noGrad, cast := t.thread, t.noGrad, t.autocast
	t.thread, t.noGrad, t.autocast = 1, true, nil
	t.countDependencies(root)
	queue := &readyQueue{}
	root.refs++
	root.makeBuffer()
	root.buffer[input] = t.retain(grad)
	queue.push(root)
	for len(*queue) > 0 {
		n := queue.pop()
		if t.parallel != nil {
			t.parallel.beforeNode(n)
		}
		t.evaluate(n, queue)
		t.releaseNode(n)
	}
	t.callBack()
	t.thread, t.noGrad, t.autocast = thread, noGrad, cast
}

// callBack runs what was queued for the end of backward
// (GraphTask::exec_post_processing).
func (t *Torch) callBack() {
	for len(t.callbacks) > 0 {
		callbacks := t.callbacks
		t.callbacks = nil
		for _, f := range callbacks {
			f()
		}
	}
}

// countDependencies counts, for every node reachable from root, the gradients
// that it will receive.
func (t *Torch) countDependencies(root *node) {
	stack := append(t.path[:0], root)
	seen := append(t.seen[:0], root)
	root.visited = true
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range n.next {
			if e.node == nil {
				continue
			}
			e.node.waiting++
			if !e.node.visited {
				e.node.visited = true
				seen = append(seen, e.node)
				stack = append(stack, e.node)
			}
		}
	}
	for _, n := range seen {
		n.visited = false
	}
	t.path, t.seen = stack, seen
}

// evaluate runs a node, then frees its incoming gradients and what it saved,
// then delivers the outgoing ones (call_function, evaluate_function).
func (t *Torch) evaluate(n *node, queue *readyQueue) {
	t.work.Nodes++
	grads := n.buffer
	n.buffer = nil
	outer := t.module
	if n.module != nil {
		t.module = n.module
	}
	for _, hook := range n.hooks {
		hook()
	}
	var out []*Tensor
	if n.variable != nil {
		t.accumulateGrad(n.variable, grads[0])
		if t.parallel != nil {
			t.parallel.postAccumulate(n.variable)
		}
	} else {
		if n.checkpoint != nil {
			t.recompute(n.checkpoint)
		}
		switch {
		case !slices.ContainsFunc(grads, func(g *Tensor) bool { return g != nil }): // none comes in, none goes out
			out = t.lists.take(len(n.next))
		case n.gradient != nil:
			out = t.lists.take(1)
			out[0] = n.gradient(grads[0])
		default:
			out = n.backward(grads)
		}
		if n.checkpoint != nil {
			t.dropRecomputed(n)
		}
		t.validate(n, out)
		t.release(grads...)
	}
	t.releaseSaved(n)
	for i, e := range n.next {
		if e.node == nil {
			continue
		}
		e.node.waiting--
		if out[i] != nil {
			t.deliver(e, out[i])
		}
		if e.node.waiting == 0 {
			e.node.refs++
			if e.node.buffer == nil {
				e.node.makeBuffer()
			}
			queue.push(e.node)
		}
	}
	t.module = outer
}

// validate gives outgoing gradients the shape and type of their tensors:
// broadcasting is undone by a sum, promotion by a cast (validate_outputs).
func (t *Torch) validate(n *node, out []*Tensor) {
	for i, e := range n.next {
		if out[i] == nil {
			continue
		}
		if e.node == nil { // not needed
			t.release(out[i])
			out[i] = nil
			continue
		}
		if g := out[i]; !slices.Equal(g.Shape, e.shape) {
			out[i] = t.sumTo(g, e.shape)
			t.release(g)
		}
		if g := out[i]; g.DType != e.dtype {
			out[i] = t.cast(g, e.dtype)
			t.release(g)
		}
	}
}

// deliver accumulates a gradient in the input buffer of a node. It is added in
// place if the buffered one has no other reference: a view shares its storage
// with the tensor it keeps (input_buffer.cpp, can_accumulate_inplace).
func (t *Torch) deliver(e edge, grad *Tensor) {
	if e.node.buffer == nil {
		e.node.makeBuffer()
	}
	old := e.node.buffer[e.input]
	if old == nil {
		e.node.buffer[e.input] = grad
		return
	}
	if old.isDense() && old.refs == 1 && old.storage.refs == 1 {
		t.noteUpdate(old, grad)
		t.release(grad)
		return
	}
	e.node.buffer[e.input] = t.pointwise(old.DType, old, grad)
	t.release(old, grad)
}

// accumulateGrad keeps the first gradient of a leaf as it is, if it has no
// other reference and the leaf's layout; later ones are added in place
// (functions/accumulate_grad.h).
func (t *Torch) accumulateGrad(leaf, grad *Tensor) {
	switch {
	case grad == nil:
	case leaf.grad != nil:
		t.noteUpdate(leaf.grad, grad)
		t.release(grad)
	case grad.refs == 1 && sameLayout(grad, leaf):
		leaf.grad = t.detach(grad)
		t.release(grad)
	default:
		leaf.grad = t.emptyStrided(grad.DType, leaf.Shape, leaf.stride)
		t.release(grad)
	}
}

// sameLayout is utils::obeys_layout_contract: equal strides where a dimension
// has more than one element; a leaf that is not dense needs contiguous ones.
func sameLayout(grad, leaf *Tensor) bool {
	for i, s := range leaf.Shape {
		if s != 1 && grad.stride[i] != leaf.stride[i] {
			return false
		}
	}
	return true
}
