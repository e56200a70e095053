package predict

import (
	"memorymark/internal/effort"
	"memorymark/internal/gpu"
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// build makes the model, as this rank has it.
func (p *Process) build(d torch.Device) error {
	var err error
	how, parallel := p.w.Run(), p.w.Parallel
	builder := p.builder
	if builder == nil {
		builder = models.New
	}
	build := func() { p.model, err = builder(p.t, p.w.Config, how) }
	if p.w.Quantize != workload.NotQuantized {
		if err := p.settleHomes(d); err != nil {
			return err
		}
		how.Homes = p.homes
	}
	pipeline := parallel != nil && parallel.Kind == workload.Pipeline
	if pipeline {
		how.Stage, how.NoCache = parallel.Stage(p.rank), true
	}
	switch {
	case pipeline, parallel == nil && p.w.Loop.Build == workload.BuildOnCPU && p.w.Quantize == workload.NotQuantized:
		toDevice := p.t.BuildOnHost(build)
		if err == nil {
			toDevice()
		}
		return err
	case parallel == nil:
		build()
		return err
	}
	if hasBuckets(p.w) {
		toDevice := func() {}
		if p.w.Loop.Build == workload.BuildOnCPU && p.w.Quantize == workload.NotQuantized {
			toDevice = p.t.BuildOnHost(build)
		} else {
			build()
		}
		if err == nil {
			toDevice()
			p.barriers(2) // around the setup hook (lightning/pytorch/trainer/call.py)
			p.t.Replicate(p.replication())
		}
		return err
	}
	if err := p.settleHomes(d); err != nil {
		return err
	}
	if parallel.Kind == workload.TensorParallel {
		return p.t.SplitMatrices(parallel.GPUs, p.homes, build)
	}
	shards := sharding(parallel)
	shards.Rank = p.rank
	return p.t.FullyShard(shards, p.homes, build)
}

// barriers are those of Lightning's DDPStrategy.
func (p *Process) barriers(n int) {
	if !hasBuckets(p.w) || p.w.Loop.Name != workload.LightningLoop {
		return
	}
	for range n {
		p.t.Barrier()
	}
}

// replication is how DistributedDataParallel is called, in the loop of a library by
// the library.
func (p *Process) replication() torch.Replication {
	return torch.Replication{
		Ranks: p.w.Parallel.GPUs, BucketViews: p.w.Parallel.GradientAsBucketView, FindUnused: findsUnused(p.w), Static: p.w.Parallel.StaticGraph,
		SideStream: p.w.Loop.Name == workload.LightningLoop, Late: p.late || alwaysLate(p.w),
	}
}

// findsUnused reports whether DistributedDataParallel looks for parameters that a pass
// does not use: Trainer asks for it, but for transformers' own models under
// checkpointing (transformers/trainer.py, _build_accelerator_args).
func findsUnused(w *workload.Workload) bool {
	return hasBuckets(w) && w.Loop.Name == workload.TrainerLoop && (w.Adapter != nil || !w.Checkpointing)
}

// beginsWithNCCL reports whether segments lie as in a process that has made its
// communicator first. DDP was measured so. FSDP and tensor parallelism were
// measured with a process group that is none (torch.testing's fake one): FSDP's
// segments, which follow what its streams and kernels took, lie so all the same,
// and those of tensor parallelism lie as on one card alone.
func beginsWithNCCL(p *workload.Parallel) bool {
	return p != nil && p.Kind != workload.TensorParallel
}

// sharding is how fully_shard is called.
func sharding(p *workload.Parallel) torch.Sharding {
	s := torch.Sharding{Ranks: p.GPUs, Keep: !p.Reshards(), Offload: p.Offload}
	if p.Kind == workload.HSDP {
		s.Ranks, s.Copies = p.Shard, true
	}
	if p.Kind == workload.FSDPWithTensor {
		s.Ranks, s.Tensor = p.GPUs/p.Tensor, p.Tensor
	}
	if p.MixedPrecision == workload.BF16 {
		s.Gather, s.Reduce = torch.BFloat16, torch.Float32
	}
	return s
}

// Homes are the modules of parameters, each the one that reads it in a forward
// pass. They do not depend on the ranks.
type Homes []torch.Home

// FindHomes finds the homes of a workload's parameters.
func FindHomes(w *workload.Workload, card *gpu.Card, e *effort.Effort) (homes Homes, err error) {
	defer recovered(w, &err)
	return homesOf(w, deviceOf(card), e)
}

// settleHomes finds out in which modules the parameters are, if nobody has yet.
func (p *Process) settleHomes(d torch.Device) (err error) {
	if p.homes == nil {
		p.homes, err = homesOf(p.w, d, p.t.Effort)
	}
	return err
}

// homesOf finds homes. Quantized weights are loaded before there is an adapter.
func homesOf(w *workload.Workload, d torch.Device, e *effort.Effort) (Homes, error) {
	alone := *w
	alone.Parallel, alone.Batch = nil, 1
	if alone.Quantize != workload.NotQuantized {
		alone.Quantize, alone.Adapter = workload.NotQuantized, nil
	}
	p, err := newProcess(&alone, d, e)
	if err != nil {
		return nil, err
	}
	p.t.NoGrad(func() { p.model.Forward(p.t, p.makeBatch(false)).Drop(p.t) })
	return p.t.Homes(), nil
}
