package torch

import "slices"

// This file is torch.utils.checkpoint with use_reentrant=False: a block runs
// without saving what its backward needs, and runs again, on the engine's
// thread, when backward first needs any of it (torch/utils/checkpoint.py).

// checkpoint is a checkpointed block: _CheckpointFrame.
type checkpoint struct {
	inputs []*Var // what the block was called with, in the order in which it dies
	saver  *node  // holds the inputs of a nested block instead
	block  func(inputs []*Var) Value
	cast   DType   // of the autocast region around it
	fresh  bool    // the region caches no casts (cache_enabled of _get_autocast_kwargs)
	module *module // that called it
	// holders represent the tensors that the block saved, in the order in which
	// it saved them. They have no memory until the block has run again.
	holders []*Tensor
	hooks   int // saved tensors that still refer to the block

	recomputed bool
	next       int // the holder that the second run fills next
}

// Checkpoint calls a block under checkpointing. Every tensor that it reads,
// apart from parameters, must be one of its arguments: the one it is called
// with, which autograd keeps, or those bound as keywords, which its closure
// keeps and which are freed first.
func (t *Torch) Checkpoint(block func(x *Var, keywords []*Var) Value, x X, keywords ...X) Value {
	n := len(keywords)
	bound := func(inputs []*Var) Value { return block(inputs[n], inputs[:n]) }
	return t.CheckpointInputs(bound, append(slices.Clone(keywords), x)...)
}

// RunsAgain reports whether a block under checkpointing runs for the second time.
func (t *Torch) RunsAgain() bool { return t.second != nil }

// CheckpointInputs is Checkpoint of a block that is called with all its
// tensors, which are freed in order.
func (t *Torch) CheckpointInputs(block func(inputs []*Var) Value, inputs ...X) Value {
	c := &checkpoint{cast: t.castType(), fresh: t.autocast != nil && t.autocast.cache == nil, module: t.module, block: block}
	for _, x := range inputs {
		c.inputs = append(c.inputs, &Var{t: t, tensor: t.own(x)})
	}
	if t.noGrad {
		out := block(c.inputs)
		t.dropInputs(c)
		return out
	}
	given := c.inputs
	if t.checkpoint != nil || t.second != nil {
		c.inputs = nil
		t.saveInputs(c, given)
	}
	outer := t.checkpoint
	t.checkpoint = c
	out := block(given)
	t.checkpoint = outer
	if c.saver != nil {
		for _, v := range given {
			v.Del()
		}
	}
	if c.hooks == 0 {
		t.dropInputs(c)
	}
	return out
}

// saveInputs is _NoopSaveInputs of a nested block: the outer block's hooks hold
// its inputs, which have no memory until the outer block has run again. That run
// may end here: then the inputs are freed with the other names.
func (t *Torch) saveInputs(c *checkpoint, inputs []*Var) {
	f := t.Enter()
	f.locals = inputs
	c.saver = &node{}
	for _, v := range inputs {
		holder := t.save(c.saver, v.tensor)
		holder.requiresGrad = v.tensor.requiresGrad
	}
	f.locals = nil // they are the block's from here on
	f.End()
}

// unpackInputs returns the inputs for the second run of a block. The caller
// drops those that an outer block holds.
func (t *Torch) unpackInputs(c *checkpoint) (inputs []*Var, own bool) {
	if c.saver == nil {
		return c.inputs, false
	}
	t.recompute(c.saver.checkpoint)
	for _, holder := range c.saver.saved {
		x := t.newTensor()
		*x = Tensor{Shape: holder.Shape, stride: holder.stride, DType: holder.DType, refs: 1, storage: holder.storage, requiresGrad: holder.requiresGrad}
		holder.storage = nil
		inputs = append(inputs, &Var{t: t, tensor: x})
	}
	return inputs, true
}

func (t *Torch) dropInputs(c *checkpoint) {
	if c.saver != nil {
		t.releaseSaved(c.saver)
	}
	for _, v := range c.inputs {
		v.Del()
	}
}

// hold is the pack hook of the first run: it keeps only a tensor's metadata.
func (c *checkpoint) hold(t *Torch, n *node, x *Tensor) *Tensor {
	holder := t.newTensor()
	*holder = Tensor{Shape: x.Shape, stride: x.stride, DType: x.DType, refs: 1}
	c.holders = append(c.holders, holder)
	c.hooks++
	n.saved = append(n.saved, holder)
	n.checkpoint = c
	return holder
}

// stopRecomputation is _StopRecomputationError: everything that was saved is
// available.
type stopRecomputation struct{}

// fill is the pack hook of the second run. If the original node no longer exists,
// only this run's node keeps the tensor. After the last tensor the block need not run
// further.
func (c *checkpoint) fill(t *Torch, n *node, x *Tensor) *Tensor {
	if holder := c.holders[c.next]; holder.refs > 0 {
		x.storage.refs++
		holder.storage = x.storage
	} else {
		n.saved = append(n.saved, t.detach(x))
	}
	if c.next++; c.next == len(c.holders) {
		panic(stopRecomputation{})
	}
	return x
}

// recompute runs the block again, once.
func (t *Torch) recompute(c *checkpoint) {
	if c.recomputed {
		return
	}
	c.recomputed = true
	inputs, own := t.unpackInputs(c)
	second := &secondRun{checkpoint: c, frames: len(t.frames)}
	outer, grad, cast, module := t.second, t.noGrad, t.autocast, t.module
	t.second, t.noGrad, t.module = second, false, c.module
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, stopped := r.(stopRecomputation); !stopped {
					panic(r)
				}
			}
		}()
		region := t.Autocast
		if c.fresh {
			region = t.AutocastUncached
		}
		region(c.cast, func() { t.Drop(c.block(inputs)) })
	}()
	inner := t.autocast
	t.second, t.noGrad, t.autocast = outer, grad, cast
	t.unwind(second, inner)
	t.module = module
	if own {
		for _, v := range inputs {
			v.Del()
		}
	}
}

// secondRun is what the second run of a block made. All of it is freed when the
// run stops, except what its holders keep.
type secondRun struct {
	checkpoint *checkpoint
	tensors    []*Tensor
	nodes      []*node
	frames     int // that ran when it began
}

func (s *secondRun) add(x *Tensor) {
	s.tensors = append(s.tensors, x)
	x.second = s
}

// owns reports whether a tensor is of the run.
func (s *secondRun) owns(x *Tensor) bool { return x != nil && x.second == s }

// unwind models the exception that stops the second run: temporaries are freed
// at once, autocast's casts when its region is left, and the names of the
// functions it passed, innermost first, when the exception itself is freed.
func (t *Torch) unwind(s *secondRun, cast *autocast) {
	frames := t.frames[s.frames:]
	named := make(map[*Tensor]bool)
	outermost := make(map[*Tensor]*Frame) // that refers to a tensor
	for _, f := range slices.Backward(frames) {
		for _, x := range f.refers() {
			named[x], outermost[x] = true, f
		}
	}
	var casts []*Tensor
	if cast != nil && cast.cache != nil {
		for _, leaf := range cast.cache.order {
			casts = append(casts, cast.cache.casts[leaf])
			named[cast.cache.casts[leaf]] = true
		}
	}
	for _, x := range slices.Backward(s.tensors) {
		if !named[x] {
			t.kill(s, x)
		}
	}
	for _, x := range casts {
		t.kill(s, x)
	}
	for _, f := range slices.Backward(frames) {
		for _, x := range f.refers() {
			if s.owns(x) && outermost[x] == f {
				t.kill(s, x)
			}
		}
		for _, v := range f.locals {
			if !s.owns(v.tensor) {
				v.Del()
			}
		}
	}
	t.frames = t.frames[:s.frames]
	t.cutGraph(s)
	s.tensors, s.nodes = nil, nil // tensors that are left refer to the run
}

// refers returns the tensors that a function refers to: its names, of which the
// last one counts, then the temporaries it was called with, which outlive their
// names.
func (f *Frame) refers() []*Tensor {
	if f.names != nil {
		return f.names()
	}
	var args, out []*Tensor
	for _, x := range f.args {
		if tensor, temporary := x.take(); temporary {
			args = append(args, tensor)
		}
	}
	for i, v := range f.locals {
		again := slices.ContainsFunc(f.locals[i+1:], func(later *Var) bool { return later.tensor == v.tensor })
		if v.tensor != nil && !again && !slices.Contains(args, v.tensor) {
			out = append(out, v.tensor)
		}
	}
	return append(out, args...)
}

// kill frees a tensor of the second run even if it is still referenced.
func (t *Torch) kill(s *secondRun, x *Tensor) {
	if x.refs <= 0 {
		return
	}
	x.refs = 0
	if x.base != nil && !s.owns(x.base) {
		t.release(x.base)
	}
	t.drop(x.storage)
}

// cutGraph takes down the graph of the second run, which leads into the graph
// before the block, or ends at leaves that the run made.
func (t *Torch) cutGraph(s *secondRun) {
	for _, n := range s.nodes {
		for _, e := range n.next {
			if e.node != nil && e.node.second != s && !s.owns(e.node.variable) {
				t.releaseNode(e.node)
			}
		}
		n.next = nil
	}
}

// dropRecomputed releases the recomputed tensors that a node of a checkpointed
// block needed: it owns them, and they are freed when its function returns, the
// last one unpacked first.
func (t *Torch) dropRecomputed(n *node) {
	for _, x := range slices.Backward(n.saved) {
		t.drop(x.storage)
		x.storage = nil
	}
}

// unhook drops the hooks of a node; the last hook of a block frees its inputs.
func (t *Torch) unhook(n *node) {
	c := n.checkpoint
	n.checkpoint = nil
	for _, x := range n.saved {
		x.refs = 0
		if x.storage != nil { // it was recomputed and never used
			t.drop(x.storage)
		}
		if c.hooks--; c.hooks == 0 {
			t.dropInputs(c)
		}
	}
	n.saved = nil
}
