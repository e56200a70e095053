package torch

import "memorymark/internal/trace"

// wrapper is what a kind of data parallelism does around the modules of a
// model and around backward: its hooks.
type wrapper interface {
	// preForward and postForward run before and after a module's forward
	// function; what it returns may be nothing.
	preForward(m *module)
	postForward(m *module, outputs ...*Tensor)
	// beforeNode runs before a node of the graph.
	beforeNode(n *node)
	// postAccumulate runs once a leaf has its gradient.
	postAccumulate(leaf *Tensor)
	// keepGradients sets whether this rank keeps its gradients unreduced from now
	// on.
	keepGradients(keep bool)
}

// isLayer reports whether parallelism is applied to a module on its own: an
// outermost numbered module, such as a layer of a transformer.
func (t *Torch) isLayer(m *module) bool {
	return t.parallel != nil && m.layer == m.path && m.path != ""
}

// Alone reports whether nothing is wrapped around the modules of the model.
func (t *Torch) Alone() bool { return t.parallel == nil }

// sharded reports whether this rank has only parts of the parameters.
func (t *Torch) sharded() bool { return t.wholes > 0 }

// Call calls the whole model with the hooks of parallelism around it; forward
// returns what the model does.
func (t *Torch) Call(forward func() []Value) {
	if t.parallel == nil {
		forward()
		return
	}
	t.parallel.preForward(t.root)
	values := forward()
	outputs := make([]*Tensor, len(values))
	for i, v := range values {
		outputs[i] = v.tensor
	}
	t.parallel.postForward(t.root, outputs...)
}

// NoSync runs a pass whose gradients are not reduced: no_sync of
// DistributedDataParallel, set_requires_gradient_sync of fully_shard's modules.
func (t *Torch) NoSync(pass func()) {
	if t.parallel == nil {
		pass()
		return
	}
	t.parallel.keepGradients(true)
	pass()
	t.parallel.keepGradients(false)
}

// Owner is the owner of a parameter: its module, and the layer that contains it,
// "" for none.
type Owner struct{ Module, Layer string }

// Owners returns the module of each parameter, that which read it first. A frozen
// one that is never read precedes the copy that is trained in its place.
func (t *Torch) Owners() []Owner {
	out := make([]Owner, len(t.parameters))
	for i, p := range t.parameters {
		m := p.owner
		if m == nil && !p.requiresGrad && i+1 < len(t.parameters) {
			m = t.parameters[i+1].owner
		}
		if m != nil {
			out[i] = Owner{m.path, m.layer}
		}
	}
	return out
}

// setOwner sets the owner of a parameter before anything reads it.
func (t *Torch) setOwner(p *Tensor, h Owner) {
	p.unread = false
	p.owner = t.root
	if h.Module != "" {
		stacks := t.trace.Stacks
		p.owner = &module{path: h.Module, layer: h.Layer, stack: stacks.Add([]trace.FrameID{stacks.AddFrame(trace.Frame{File: t.Name, Name: h.Module})})}
	}
}
