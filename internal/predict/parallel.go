package predict

import (
	"fmt"

	"memorymark/internal/gpu"
	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/workbudget"
	"memorymark/internal/workload"
)

// buildModel builds the model, as this rank has it.
func (p *program) buildModel(d torch.Device) error {
	var err error
	how, parallel := p.w.Run(), p.w.Parallel
	builder := p.builder
	switch {
	case p.w.Program != nil:
		builder = func(t *torch.Torch, _ *hfconfig.Config, r models.Run) (*models.Model, error) {
			return p.w.Program.Make(t, r)
		}
	case builder == nil:
		builder = models.New
	case parallel != nil && parallel.Kind != workload.DDP:
		return fmt.Errorf("only models of package models are split over GPUs")
	}
	build := func() { p.model, err = builder(p.t, p.w.Config, how) }
	if p.w.Quantize != workload.NotQuantized {
		if err := p.settleOwners(d); err != nil {
			return err
		}
		how.Owners = p.owners
	}
	pipeline := parallel != nil && parallel.Kind == workload.Pipeline
	if pipeline {
		how.Stage, how.NoCache = parallel.Stage(p.rank), true
	}
	switch {
	case pipeline, parallel == nil && p.w.Program == nil && p.w.Loop.Build == workload.BuildOnCPU && p.w.Quantize == workload.NotQuantized:
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
	if err := p.settleOwners(d); err != nil {
		return err
	}
	if parallel.Kind == workload.TensorParallel {
		return invalid.At("parallel", p.t.SplitMatrices(parallel.GPUs, p.owners, build))
	}
	shards := sharding(parallel)
	shards.Rank = p.rank
	return invalid.At("parallel", p.t.FullyShard(shards, p.owners, build))
}

// barriers are those of Lightning's DDPStrategy.
func (p *program) barriers(n int) {
	if !hasBuckets(p.w) || p.w.Loop.Name != workload.LightningLoop {
		return
	}
	for range n {
		p.t.Barrier()
	}
}

// replication is how DistributedDataParallel is called, in the loop of a library by
// the library.
func (p *program) replication() torch.Replication {
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

// Owners are the modules of parameters, each the one that reads it in a forward
// pass. They do not depend on the ranks.
type Owners []torch.Owner

// FindOwners finds the owners of a workload's parameters.
func FindOwners(w *workload.Workload, card *gpu.Card, e *workbudget.Budget) (owners Owners, err error) {
	defer recoverError(w, &err)
	return ownersOf(w, deviceOf(card), e)
}

// settleOwners finds out in which modules the parameters are, if that is not known yet.
func (p *program) settleOwners(d torch.Device) (err error) {
	if p.owners == nil {
		p.owners, err = ownersOf(p.w, d, p.t.Budget)
	}
	return err
}

// ownersOf finds owners. Quantized weights are loaded before there is an adapter.
func ownersOf(w *workload.Workload, d torch.Device, e *workbudget.Budget) (Owners, error) {
	alone := *w
	alone.Parallel, alone.Batch = nil, 1
	if alone.Quantize != workload.NotQuantized {
		alone.Quantize, alone.Adapter = workload.NotQuantized, nil
	}
	p := &program{w: &alone}
	if err := p.build(d, e); err != nil {
		return nil, err
	}
	p.t.NoGrad(func() { p.model.Forward(p.t, p.makeBatch(false)).Drop(p.t) })
	return p.t.Owners(), nil
}
