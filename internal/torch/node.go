package torch

import "math"

// node is a function of the autograd graph (torch/csrc/autograd/function.h).
type node struct {
	name   string
	module *module // whose forward made it
	seq    int64
	refs   int
	next   []edge
	saved  []*Tensor  // in the order of their names, as PyTorch declares them
	few    [2]*Tensor // what most nodes save
	kept   []*Tensor  // by a Python function's context, until the node goes
	// backward returns a gradient for each edge, nil for none. It borrows the
	// incoming gradients, nil where there is none, and owns what it returns.
	backward func(grads []*Tensor) []*Tensor
	// gradient is the backward of a function of one tensor that returns one.
	gradient   func(grad *Tensor) *Tensor
	checkpoint *checkpoint // the block that holds the saved tensors, nil for none
	second     *secondRun  // that made it, nil for none
	outputs    int         // of the forward function: the gradients that come in
	variable   *Tensor     // of AccumulateGrad
	hooks      []func()    // that run before it: Tensor.register_hook of an output

	// What the engine keeps of a node while it runs.
	waiting int // gradients that are still to come
	buffer  []*Tensor
	single  [1]*Tensor // the buffer of most nodes
	visited bool
}

// makeBuffer allocates slots for the gradients of each output.
func (n *node) makeBuffer() {
	if n.outputs == len(n.single) {
		n.single[0] = nil
		n.buffer = n.single[:]
		return
	}
	n.buffer = make([]*Tensor, n.outputs)
}

// edge leads to the function that a gradient goes to next, and says what the
// gradient must look like there (InputMetadata).
type edge struct {
	node  *node
	input int
	shape []int64
	dtype DType
}

// accumulateSequence puts AccumulateGrad before everything else that is ready
// (AccumulateGrad sets sequence_nr to UINT64_MAX).
const accumulateSequence = math.MaxInt64

// edgeOf returns where the gradient of a tensor goes, nowhere if it needs none.
func (t *Torch) edgeOf(x *Tensor) edge {
	switch {
	case x == nil || !x.requiresGrad:
		return edge{}
	case x.fn != nil:
		x.fn.refs++
		return edge{x.fn, x.output, x.Shape, x.DType}
	case x.accumulate == nil:
		t.retain(x) // for the node
		x.accumulate = t.nodes.next()
		*x.accumulate = node{name: "AccumulateGrad", seq: accumulateSequence, outputs: 1, variable: x, module: x.owner}
	}
	x.accumulate.refs++
	return edge{x.accumulate, 0, x.Shape, x.DType}
}

// needsGrad reports whether an operator on these tensors is recorded.
func (t *Torch) needsGrad(inputs ...*Tensor) bool {
	if t.noGrad {
		return false
	}
	for _, x := range inputs {
		if x != nil && x.requiresGrad {
			return true
		}
	}
	return false
}

// record makes a node for an operator, if one of its inputs needs a gradient;
// else it returns nil.
func (t *Torch) record(name string, inputs ...*Tensor) *node {
	t.claim(inputs)
	if !t.needsGrad(inputs...) {
		return nil
	}
	if t.thread == 1 {
		t.work.Nodes++ // of a pass that is computed again
	}
	n := t.nodes.next()
	n.name, n.module, n.seq = name, t.module, t.sequence
	t.sequence++
	if t.second != nil {
		n.second = t.second
		t.second.nodes = append(t.second.nodes, n)
	}
	n.next = t.edges.take(len(inputs))
	for i, x := range inputs {
		n.next[i] = t.edgeOf(x)
	}
	return n
}

// wants reports whether the gradient of an input is needed.
func (n *node) wants(input int) bool { return n.next[input].node != nil }

// handOn passes the gradient of a sum to those of its inputs that need one.
func (t *Torch) handOn(n *node, grad *Tensor) []*Tensor {
	out := t.lists.take(len(n.next))
	for i := range out {
		if n.wants(i) {
			out[i] = t.retain(grad)
		}
	}
	return out
}

// save keeps a tensor's memory for backward, and returns it as backward finds
// it (SavedVariable). Inputs are saved in the order of their names in
// derivatives.yaml, then results likewise, and are released in that order.
func (t *Torch) save(n *node, x *Tensor) *Tensor {
	if x == nil {
		return nil
	}
	switch { // a block within a second run comes before that
	case t.checkpoint != nil:
		return t.checkpoint.hold(t, n, x)
	case t.second != nil:
		return t.second.checkpoint.fill(t, n, x)
	}
	kept := t.detach(x)
	if n.saved == nil {
		n.saved = n.few[:0]
	}
	if len(n.saved) == cap(n.saved) {
		n.saved = append(t.lists.take(2 * cap(n.saved))[:0], n.saved...)
	}
	n.saved = append(n.saved, kept)
	return kept
}

// setOutputs makes tensors the outputs of the node, if it is not nil.
func (n *node) setOutputs(outputs ...*Tensor) {
	if n == nil {
		return
	}
	for _, x := range outputs {
		n.refs++
		x.fn, x.output, x.requiresGrad = n, n.outputs, true
		n.outputs++
	}
}

// releaseSaved releases what was saved for backward.
func (t *Torch) releaseSaved(n *node) {
	if n.checkpoint != nil {
		t.unhook(n)
		return
	}
	saved := n.saved
	n.saved = nil
	for _, x := range saved {
		t.releaseOne(x)
	}
}

// releaseNode releases a reference to a node. The last one frees the part of
// the graph that only this node keeps, without recursion, in the order of
// PyTorch's deleteNode (torch/csrc/autograd/function.cpp).
func (t *Torch) releaseNode(n *node) {
	n.refs--
	if n.refs > 0 {
		return
	}
	stack := t.gather(n, nil)
	for len(stack) > 0 {
		last := stack[len(stack)-1]
		stack = t.gather(last, stack[:len(stack)-1])
	}
}

// gather releases what a node saved and moves the functions that only it
// refers to onto the stack.
func (t *Torch) gather(n *node, stack []*node) []*node {
	t.releaseSaved(n)
	kept := n.kept
	n.kept = nil
	for _, x := range kept {
		t.releaseOne(x)
	}
	if v := n.variable; v != nil {
		v.accumulate = nil
		t.releaseOne(v)
	}
	for _, e := range n.next {
		if e.node == nil {
			continue
		}
		if e.node.refs--; e.node.refs == 0 {
			stack = append(stack, e.node)
		}
	}
	n.next = nil
	return stack
}
