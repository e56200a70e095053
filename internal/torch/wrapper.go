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
	// accumulated runs once a leaf has its gradient.
	accumulated(leaf *Tensor)
	// keepGradients has this rank keep its gradients to itself from now on, or not.
	keepGradients(keep bool)
}

// isLayer reports whether a module is one that parallelism is applied to by
// itself: a numbered one that is in no other, as the layers of a transformer
// are.
func (t *Torch) isLayer(m *module) bool {
	return t.parallel != nil && m.layer == m.path && m.path != ""
}

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

// Home is where a parameter is: its module, and the layer that is in, "" for
// none.
type Home struct{ Module, Layer string }

// Homes returns the module of each parameter, that which read it first. A frozen
// one that nobody reads is beside the copy that is trained in its place.
func (t *Torch) Homes() []Home {
	out := make([]Home, len(t.parameters))
	for i, p := range t.parameters {
		m := p.home
		if m == nil && !p.requiresGrad && i+1 < len(t.parameters) {
			m = t.parameters[i+1].home
		}
		if m != nil {
			out[i] = Home{m.path, m.layer}
		}
	}
	return out
}

// settle gives a parameter its home before anything reads it.
func (t *Torch) settle(p *Tensor, h Home) {
	p.unread = false
	p.home = t.root
	if h.Module != "" {
		stacks := t.trace.Stacks
		p.home = &module{path: h.Module, layer: h.Layer, stack: stacks.Add([]trace.FrameID{stacks.AddFrame(trace.Frame{File: t.Name, Name: h.Module})})}
	}
}
