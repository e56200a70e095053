package torch

import (
	"cmp"
	"fmt"
	"slices"

	"memorymark/internal/trace"
)

// This file is torch.distributed.fsdp.fully_shard, applied to every layer of a
// model and then to the model: each rank keeps a part of every parameter, and
// a layer's parameters are gathered before it runs, in forward and again in
// backward, and their gradients are scattered after it
// (torch/distributed/fsdp/_fully_shard). What moves data is in
// fsdp_collectives.go.

// Sharding is how fully_shard is called.
type Sharding struct {
	Ranks   int64 // that share the parameters
	Rank    int64 // which of them this is
	Gather  DType // MixedPrecisionPolicy.param_dtype, none to keep the parameters'
	Reduce  DType // MixedPrecisionPolicy.reduce_dtype, none for the gradients'
	Keep    bool  // reshard_after_forward=False
	Offload bool  // CPUOffloadPolicy
	Copies  bool  // of the ranks that share, which all-reduce (HSDP)
	Tensor  int64 // ranks that matrices are split over before, 1 for none
}

// fsdp is the states of all modules, and what they share (FSDPCommContext).
type fsdp struct {
	t      *Torch
	how    Sharding
	groups []*shardGroup // in the order of named_modules: the root first

	gathers, reduces, allReduces Stream
	order                        []*shardGroup // as they ran forward
	result                       *Tensor       // of the latest all-gather in forward
	reduceInput                  *Tensor       // of the latest reduce-scatter
	finishing                    bool          // the final callback is queued
	keeps                        bool          // gradients are not reduced (reduce_grads)
}

// shardGroup is the parameters that a module gathers together (FSDPParamGroup).
type shardGroup struct {
	path       string // of the module
	params     []*shardedParam
	state      trainingState
	unsharded  bool
	gathered   *Tensor // the result of an all-gather that is not yet waited for
	ran        []int   // its indices in the order
	began      int64   // the sequence number at which its forward began
	allReduced *Tensor // what HSDP all-reduced, which stays to the end of backward
}

// trainingState is where a group is in a step (TrainingState).
type trainingState int

const (
	idle trainingState = iota
	preBackward
	postBackward
)

// shardedParam is a parameter that is whole only while it is needed.
type shardedParam struct {
	whole  *Tensor // the unsharded parameter, which the graph refers to
	shard  *Tensor // this rank's part, which the optimizer updates
	padded int64   // elements of a part, as many on every rank
	// kept is the sum of gradients that were not reduced, in the type of the
	// reduction if that differs (unsharded_accumulated_grad).
	kept *Tensor
}

// FullyShard builds a model on the meta device, shards it, and gives this
// rank's parts memory. Each parameter belongs to the layer that owns it.
func (t *Torch) FullyShard(how Sharding, owners []Owner, build func()) error {
	f := &fsdp{t: t, how: how}
	var err error
	meta := t.onMeta(func() {
		build()
		for _, p := range t.parameters {
			t.wholes += p.Numel()
		}
		if how.Tensor > 1 {
			err = t.splitMatrices(how.Tensor)
		}
	})
	if err != nil {
		return err
	}
	f.gathers = t.newStream()
	f.reduces, f.allReduces = t.newStream(), t.newStream()
	byPath := map[string]*shardGroup{"": {}}
	f.groups = append(f.groups, byPath[""])
	parts := make(map[*storage]*shardedParam)
	for i, whole := range t.parameters {
		if len(whole.Shape) == 0 { // _verify_managed_param (_fsdp_init.py)
			return fmt.Errorf("fully_shard splits no parameter without a dimension, and %s has one; use DDP, or give it one dimension", cmp.Or(owners[i].Module, t.Name))
		}
		t.setOwner(whole, owners[i])
		g := byPath[owners[i].Layer]
		if g == nil {
			g = &shardGroup{path: owners[i].Layer}
			byPath[g.path] = g
			f.groups = append(f.groups, g)
		}
		p := t.shard(whole, how)
		parts[whole.storage] = p
		g.params = append(g.params, p)
		t.parameters[i] = p.shard
	}
	f.toEmpty(meta, parts)
	if how.Offload {
		t.parameters = nil // the CPU updates them
	}
	t.parallel = f
	return nil
}

// rows returns how much of a first dimension a rank has, as torch.chunk splits
// it: the first rank has the most, and the last ones may have none.
func (s Sharding) rows(of int64) int64 {
	chunk := divUp(of, s.Ranks)
	return max(0, min(chunk, of-s.Rank*chunk))
}

// shard splits a parameter along its first dimension (_init_sharded_param).
func (t *Torch) shard(whole *Tensor, how Sharding) *shardedParam {
	shape := slices.Clone(whole.Shape)
	shape[0] = how.rows(shape[0])
	shard := t.newTensor()
	*shard = Tensor{Shape: shape, stride: contiguousStrides(shape), DType: whole.DType, refs: 1, requiresGrad: whole.requiresGrad}
	shard.storage = t.storages.next()
	shard.storage.id, shard.storage.refs = trace.None, 1
	shard.owner = whole.owner
	if how.Gather != NoDType {
		whole.DType = how.Gather
	}
	return &shardedParam{whole: whole, shard: shard, padded: divUp(whole.Shape[0], how.Ranks) * product(shape[1:])}
}

// toEmpty is model.to_empty(): every module's parameters and buffers get
// memory, a tied parameter once for each module that has it, where the last one
// stays (Module._apply). Offloaded, only the buffers are on the card. Uneven
// parts are padded when their group's module is done (FSDPModule._apply).
func (f *fsdp) toEmpty(meta *metaDevice, parts map[*storage]*shardedParam) {
	t := f.t
	if !f.how.Offload {
		t.fakeContext()
	}
	groups := make(map[*shardedParam]*shardGroup)
	for _, g := range f.groups {
		for _, p := range g.params {
			groups[p] = g
		}
	}
	var layer *shardGroup // that is not done yet
	t.As(trace.Parameter, func() {
		for _, s := range meta.storages {
			p := parts[s]
			if g := groups[p]; layer != nil && g != layer {
				f.pad(layer)
				layer = nil
			}
			switch {
			case p == nil:
				t.fill(s, meta.bytes[s])
			case !f.how.Offload:
				if g := groups[p]; g.path != "" {
					layer = g
				}
				f.hold(p, p.shard.Numel())
			}
		}
		f.pad(layer)
		f.pad(f.groups[0])
	})
}

// hold allocates new memory for a part.
func (f *fsdp) hold(p *shardedParam, elements int64) {
	old := p.shard.storage
	f.t.inModule(p.shard.owner, func() { p.shard.storage = f.t.allocate(elements * p.shard.DType.Size()) })
	f.t.drop(old)
}

// pad is FSDPParam.reset_sharded_param: to_empty has allocated parts of uneven
// sizes, and all-gathers need them as large as the first rank's.
func (f *fsdp) pad(g *shardGroup) {
	if g == nil || f.how.Offload {
		return
	}
	for _, p := range g.params {
		if p.shard.Numel() != p.padded {
			f.hold(p, p.padded)
		}
	}
}

// fakeContext models the first operators on DTensors, whose sharding is
// computed on fake tensors: those initialize a context, for "cuda" and for
// "cuda:0" (torch/_subclasses/fake_tensor.py, init_gpu_context).
func (t *Torch) fakeContext() {
	for range 2 {
		t.release(t.empty(Float32, 1))
	}
}

func (f *fsdp) group(m *module) *shardGroup {
	for _, g := range f.groups {
		if g.path == m.path {
			return g
		}
	}
	return nil
}

// preForward is FSDPState._pre_forward. A checkpointed block that runs again
// finds its parameters already gathered.
func (f *fsdp) preForward(m *module) {
	g := f.group(m)
	if g == nil || f.t.second != nil {
		return
	}
	f.unshard(g)
	f.waitForUnshard(g, true)
	g.began = f.t.sequence
	f.t.sequence++ // of RegisterPostBackwardFunction
}

// postForward is FSDPState._post_forward. The hook on the module's outputs runs
// before their gradients are used.
func (f *fsdp) postForward(m *module, outputs ...*Tensor) {
	g := f.group(m)
	if g == nil || f.t.second != nil {
		return
	}
	if !f.how.Keep {
		f.reshard(g)
	}
	g.ran = append(g.ran, len(f.order))
	f.order = append(f.order, g)
	for _, x := range outputs {
		if x != nil && x.fn != nil {
			x.fn.hooks = append(x.fn.hooks, func() { f.preBackward(g) })
		}
	}
	if g.path == "" { // the last all-gather's result has been copied out
		f.t.release(f.result)
		f.result = nil
	}
}

// preBackward is FSDPState._pre_backward: it gathers the group, and prefetches
// the one that ran before it.
func (f *fsdp) preBackward(g *shardGroup) {
	if !f.finishing {
		f.finishing = true
		f.t.callbacks = append(f.t.callbacks, f.finish)
	}
	if g.state == preBackward {
		return
	}
	g.state = preBackward
	f.unshard(g)
	f.waitForUnshard(g, false)
	if len(g.ran) == 0 {
		return
	}
	last := g.ran[len(g.ran)-1]
	g.ran = g.ran[:len(g.ran)-1]
	if last > 0 {
		f.unshard(f.order[last-1])
	}
}

// beforeNode runs RegisterPostBackwardFunction of the groups whose forward
// began after the node was made: it is an identity on a module's inputs, so it
// runs right after all of the module's backward.
func (f *fsdp) beforeNode(n *node) {
	input := n.variable != nil && n.variable.owner == nil // a leaf that is not a parameter is the first layer's
	for _, g := range f.groups {
		if g.state == preBackward && g.path != "" && (input || n.seq < g.began) {
			f.postBackward(g)
		}
	}
}

func (f *fsdp) postAccumulate(*Tensor) {}

func (f *fsdp) keepGradients(keep bool) { f.keeps = keep }

// finish is _root_post_backward_final_callback: the root's inputs need no
// gradient, so its own backward ends here.
func (f *fsdp) finish() {
	for _, g := range f.groups {
		if g.state != postBackward {
			f.postBackward(g)
		}
		g.state = idle
		g.ran = nil
		f.t.release(g.allReduced, g.gathered)
		g.allReduced, g.gathered = nil, nil
	}
	f.order = nil
	f.t.release(f.reduceInput)
	f.reduceInput = nil
	f.finishing = false
}

// postBackward is FSDPParamGroup.post_backward.
func (f *fsdp) postBackward(g *shardGroup) {
	g.state = postBackward
	for _, p := range g.params { // accumulate_unsharded_grad_if_needed
		if p.kept != nil && p.whole.grad != nil {
			f.t.release(p.whole.grad)
			p.whole.grad = nil
		}
	}
	if f.keeps {
		f.reshard(g)
		f.keep(g)
		return
	}
	var params []*shardedParam
	var grads []*Tensor
	for _, p := range g.params {
		if grad := cmp.Or(p.kept, p.whole.grad); grad != nil {
			params, grads = append(params, p), append(grads, grad)
			p.kept, p.whole.grad = nil, nil
		}
	}
	f.reshard(g)
	if len(params) == 0 {
		return
	}
	f.t.release(f.reduceInput, g.allReduced)
	f.reduceInput, g.allReduced = nil, nil
	f.reduceInput = f.reduce(g, params, grads)
}

// keep is to_accumulated_grad_if_needed of a group's parameters: their gradients
// stay whole, in the type of the reduction.
func (f *fsdp) keep(g *shardGroup) {
	for _, p := range g.params {
		grad := p.whole.grad
		if grad == nil || f.how.Reduce == NoDType || grad.DType == f.how.Reduce {
			continue
		}
		f.t.As(trace.Gradient, func() { p.kept = f.t.emptyLike(grad, f.how.Reduce) })
		f.t.release(grad)
		p.whole.grad = nil
	}
}
