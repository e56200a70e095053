package torch

import (
	"fmt"
	"math"
	"slices"

	"memorymark/internal/trace"
)

// This file is torch.nn.parallel.DistributedDataParallel: every rank has the
// whole model, and gradients are summed in buckets as backward makes them
// (torch/nn/parallel/distributed.py, torch/csrc/distributed/c10d/reducer.cpp).
// The number of ranks makes no difference to the memory of one, except for a
// few bytes at the start.

// Replication is how DistributedDataParallel is called.
type Replication struct {
	Ranks       int64
	BucketViews bool // gradient_as_bucket_view
	FindUnused  bool // find_unused_parameters
	Static      bool // static_graph
	// SideStream says that the wrapper is made on a stream of its own, as
	// Lightning does (lightning/pytorch/strategies/ddp.py, _setup_model).
	SideStream bool
	// Late says that ProcessGroupNCCL's watchdog has not yet seen the first
	// step's all-reduce done when buckets are rebuilt. It looks every 100 ms
	// (kWatchdogThreadSleepMillis), and until then the first buckets are held:
	// the next collective, that of the first new bucket, releases them
	// (ProcessGroupNCCL.cpp, shelvesToUnstash_ in workEnqueue).
	Late bool
}

// ddp is the wrapper and its Reducer.
type ddp struct {
	t       *Torch
	how     Replication
	buffers []*Tensor
	buckets []*Tensor
	bucket  map[*Tensor]*Tensor // of each parameter
	ready   []*Tensor           // parameters in the order of their gradients
	rebuilt bool                // never, where unused parameters are looked for (should_rebuild_buckets)
	used    *Tensor             // local_used_map_dev_
	held    []*Tensor           // the first buckets, if the watchdog is late
	pending int                 // gradients that the first bucket waits for
	alone   bool                // in no_sync
	// quiet says that buffers are not sent before the next pass, since the last one was
	// in no_sync (require_forward_param_sync).
	quiet bool
}

// The sizes of buckets: the first one is small, so that it is full soon
// (torch.distributed._DEFAULT_FIRST_BUCKET_BYTES, bucket_cap_mb), and the bytes
// of one broadcast (broadcast_bucket_size).
const (
	firstBucket     = 1 << 20
	nextBuckets     = 25 << 20
	broadcastBucket = 250 << 20
)

// Replicate wraps the model that was built.
func (t *Torch) Replicate(how Replication) {
	stream := t.stream
	if how.SideStream {
		stream = t.newStream()
	}
	t.on(stream, func() { t.parallel = t.newDDP(how) })
}

func (t *Torch) newDDP(how Replication) *ddp {
	d := &ddp{t: t, how: how, buffers: t.modelBuffers()}
	learned := t.trainable()
	t.verifyShapes(learned, how.Ranks)
	t.broadcast(append(slices.Clone(t.parameters), d.buffers...)) // _sync_module_states: frozen ones, too
	if how.FindUnused {
		buckets := bucketBySize(learned, firstBucket, nextBuckets)
		slices.Reverse(buckets) // roughly the order of backward
		d.fill(buckets)
		d.used = t.empty(Int32, int64(len(learned)))
		return d
	}
	// Without unused parameters everything is in one bucket until the order of
	// gradients is known (_ddp_init_helper).
	d.fill(bucketBySize(learned, math.MaxInt64))
	return d
}

// Barrier is torch.distributed.barrier(): a tensor is all-reduced, which the work
// object holds until the next barrier (ProcessGroupNCCL.cpp, barrier), with a
// temporary one.
func (t *Torch) Barrier() {
	old := t.barrier
	t.barrier = t.empty(Bool, 1)
	t.release(old)
	t.release(t.empty(Float32, 1))
}

// SumOverRanks is Accelerator.gather(x).sum() of a number
// (accelerate/utils/operations.py, _gpu_gather_one).
func (t *Torch) SumOverRanks(x X) Value {
	own := t.emptyLike(read(x), read(x).DType)
	all := t.empty(own.DType, t.Ranks)
	t.release(own)
	sum := t.empty(own.DType)
	t.release(all)
	t.done(x)
	return Value{sum}
}

// trainable returns the parameters that are not frozen
// (_build_params_for_reducer).
func (t *Torch) trainable() []*Tensor {
	return slices.DeleteFunc(slices.Clone(t.parameters), func(p *Tensor) bool { return !p.requiresGrad })
}

// modelBuffers returns the model's tensors that are not parameters.
func (t *Torch) modelBuffers() []*Tensor {
	listed := make(map[*Tensor]bool, len(t.parameters))
	for _, p := range t.parameters {
		listed[p] = true
	}
	return slices.DeleteFunc(slices.Clone(t.built), func(x *Tensor) bool {
		return x.refs <= 0 || x.storage.id == trace.None || listed[x]
	})
}

// verifyShapes is _verify_param_shape_across_processes: every rank's number of
// parameters, gathered, and this one's sizes and strides
// (torch/csrc/distributed/c10d/reducer.cpp, verify_params_across_processes).
func (t *Torch) verifyShapes(parameters []*Tensor, ranks int64) {
	own := t.empty(Int64)
	var others []*Tensor
	for range ranks {
		others = append(others, t.empty(Int64))
	}
	t.release(t.empty(Int64, ranks)) // NCCL gathers into one tensor
	numbers := int64(0)
	for _, p := range parameters {
		numbers += 2 * int64(len(p.Shape))
	}
	t.release(t.empty(Int64, numbers))
	t.release(others...)
	t.release(own)
}

// broadcast is broadcast_coalesced: tensors are copied together, with at most
// two such copies at a time (torch/csrc/distributed/c10d/comm.cpp).
func (t *Torch) broadcast(tensors []*Tensor) {
	var flying []*Tensor
	for _, bucket := range bucketBySize(tensors, broadcastBucket) {
		if len(flying) == 2 {
			t.release(flying[0])
			flying = flying[1:]
		}
		flying = append(flying, t.flattenDense(bucket))
	}
	t.release(flying...)
}

// flattenDense is flatten_dense_tensors: non-contiguous tensors are copied
// first (torch/csrc/utils/tensor_flatten.h).
func (t *Torch) flattenDense(tensors []*Tensor) *Tensor {
	dense := mapTensors(tensors, t.contiguousPlain)
	if len(dense) == 1 {
		return dense[0]
	}
	flat := t.empty(dense[0].DType, countElements(dense))
	t.release(dense...)
	return flat
}

// fill allocates the buckets (initialize_buckets); the old ones are freed
// first, unless NCCL holds them.
func (d *ddp) fill(buckets [][]*Tensor) {
	if d.how.Late {
		d.held = d.buckets
	} else {
		d.t.release(d.buckets...)
	}
	d.buckets, d.bucket, d.pending = nil, make(map[*Tensor]*Tensor), len(buckets[0])
	d.t.As(trace.Gradient, func() {
		for _, params := range buckets {
			b := d.t.empty(params[0].DType, countElements(params))
			d.buckets = append(d.buckets, b)
			for _, p := range params {
				d.bucket[p] = b
			}
		}
	})
}

// preForward is _pre_forward: after the first backward the buckets are rebuilt
// in the order of gradients, and buffers are broadcast from rank 0.
func (d *ddp) preForward(m *module) {
	if m != d.t.root {
		return
	}
	if !d.rebuilt && len(d.ready) > 0 && !d.t.noGrad {
		d.checkUsed()
		d.rebuilt = true
		buckets := bucketBySize(d.ready, firstBucket, nextBuckets)
		// Rank 0 tells which parameters are in which bucket, and how many
		// there are in each (sync_bucket_indices).
		indices := d.t.empty(Int32, int64(len(d.ready))+1)
		sizes := d.t.empty(Int32, int64(len(buckets)))
		d.t.release(sizes, indices)
		d.fill(buckets)
	}
	if !d.quiet {
		d.t.broadcast(d.buffers)
	}
}

// BucketsRebuilt reports whether DDP has rebuilt its buckets, which it does once.
func (t *Torch) BucketsRebuilt() bool {
	d, ok := t.parallel.(*ddp)
	return ok && d.rebuilt
}

// UnusedError says that the loss does not depend on n parameters, such as those of a
// pooler.
type UnusedError struct{ Parameters int }

func (e *UnusedError) Error() string {
	return fmt.Sprintf("DistributedDataParallel stops in the second pass, because the loss does not depend on %d of the parameters; set static_graph of parallel, or use a head that needs all of them", e.Parameters)
}

// checkUsed is ensure_prior_reduction_finished: a bucket that waits for the gradient
// of an unused parameter is never reduced. A static graph allows for them.
func (d *ddp) checkUsed() {
	if missing := len(d.bucket) - len(d.ready); missing > 0 && !d.how.Static {
		panic(Interruption{&UnusedError{missing}})
	}
}

func (d *ddp) postForward(m *module, _ ...*Tensor) {
	if m == d.t.root {
		d.quiet = d.alone
	}
}

func (d *ddp) keepGradients(keep bool) { d.alone = keep }

func (d *ddp) beforeNode(*node) {}

// postAccumulate is Reducer::autograd_hook: the gradient is copied into its
// bucket, and becomes a view of it with gradient_as_bucket_view. A leaf that is
// not a parameter, such as a checkpointed input, has no hook.
func (d *ddp) postAccumulate(p *Tensor) {
	b := d.bucket[p]
	if b == nil || d.alone {
		return
	}
	if !d.rebuilt && !d.how.FindUnused && indexIn(d.t, d.ready, p) < 0 {
		d.ready = append(d.ready, p)
	}
	d.t.work.Traffic.Summed += float64(p.bytes())
	d.reduce(b)
	if !d.how.BucketViews || p.grad == nil || p.grad.storage == b.storage {
		return
	}
	view := d.t.alias(b, p.Shape, p.stride)
	d.t.release(p.grad)
	p.grad = view
}

// reduce counts a gradient of a bucket. Buckets are reduced in order, so the
// first full one is the first collective after the buckets were allocated.
func (d *ddp) reduce(b *Tensor) {
	if !d.rebuilt || len(d.held) == 0 || b != d.buckets[0] {
		return
	}
	if d.pending--; d.pending == 0 {
		d.t.release(d.held...)
		d.held = nil
	}
}

// bucketBySize is compute_bucket_assignment_by_size: consecutive tensors of a
// type share a bucket until it is full; the last limit applies to all later
// buckets. Buckets that were never full come last.
func bucketBySize(tensors []*Tensor, limits ...int64) [][]*Tensor {
	type filling struct {
		tensors []*Tensor
		bytes   int64
		limit   int
	}
	var full [][]*Tensor
	open := make(map[DType]*filling)
	var types []DType
	for _, x := range tensors {
		f := open[x.DType]
		if f == nil {
			f = &filling{}
			open[x.DType] = f
			types = append(types, x.DType)
		}
		f.tensors, f.bytes = append(f.tensors, x), f.bytes+x.bytes()
		if f.bytes >= limits[f.limit] {
			full = append(full, f.tensors)
			f.tensors, f.bytes, f.limit = nil, 0, min(f.limit+1, len(limits)-1)
		}
	}
	for _, dtype := range types {
		if f := open[dtype]; len(f.tensors) > 0 {
			full = append(full, f.tensors)
		}
	}
	return full
}

// countElements returns how many elements the tensors have in memory.
func countElements(tensors []*Tensor) (n int64) {
	for _, x := range tensors {
		n += x.bytes() / x.DType.Size()
	}
	return n
}
