package torch

import (
	"math"

	"memorymark/internal/steptime"

	"memorymark/internal/trace"
)

// This file is torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py: what
// all-gathers and reduce-scatters allocate, and on which streams.

// unshard is FSDPParamGroup.unshard, foreach_all_gather: the parts are copied
// into this rank's slice of the result, on a separate stream.
func (f *fsdp) unshard(g *shardGroup) {
	if g.gathered != nil || g.unsharded {
		return
	}
	t := f.t
	t.on(f.gathers, func() {
		inputs := f.gatherInputs(g)
		dtype := g.params[0].whole.DType
		total := int64(0) // bytes of this rank's parts
		for _, p := range g.params {
			total += p.padded * p.whole.DType.Size()
			if p.whole.DType != dtype {
				dtype = Uint8 // mixed types are gathered as bytes (_get_all_gather_input_metadatas)
			}
		}
		g.gathered = t.empty(dtype, total/dtype.Size()*f.how.Ranks)
		t.countTraffic(&t.work.Traffic.Gathered, g.gathered.bytes())
		t.releaseList(inputs)
	})
}

// gatherInputs is _get_param_all_gather_inputs: the parts themselves, or cast
// together into one tensor of another type, or each copied from the CPU.
func (f *fsdp) gatherInputs(g *shardGroup) []*Tensor {
	t, cast := f.t, int64(0)
	var copies []*Tensor
	for _, p := range g.params {
		switch casts := p.whole.DType != p.shard.DType; {
		case f.how.Offload:
			x := t.empty(p.shard.DType, p.padded)
			if casts {
				x = t.replace(x, t.empty(p.whole.DType, p.padded))
			}
			copies = append(copies, x)
		case casts:
			cast += p.padded
		}
	}
	if cast > 0 {
		copies = append(copies, t.empty(f.how.Gather, cast))
	}
	return copies
}

// waitForUnshard is wait_for_unshard: the result is copied out into the
// unsharded parameters. In forward it stays until the next group has copied
// its own, so that the two can overlap.
func (f *fsdp) waitForUnshard(g *shardGroup, forward bool) {
	if g.gathered == nil {
		return
	}
	t := f.t
	var before *Tensor
	if forward {
		before, f.result = f.result, nil
	}
	var chunks []int64
	moved := int64(0)
	for _, p := range g.params {
		bytes := p.padded * p.whole.DType.Size()
		chunks = append(chunks, bytes)
		moved += 2 * bytes * f.how.Ranks
		t.As(trace.Parameter, func() { t.inModule(p.whole.owner, func() { t.fill(p.whole.storage, bytes*f.how.Ranks) }) })
	}
	ranks := f.how.Ranks
	t.kernel(steptime.Kernel, Float32) // the numbers for the kernel come from the host
	t.kernel(steptime.Kernel, BFloat16, float64(moved))
	t.scratchSized(func(d Device) int64 { return d.splitWithSizesCopy(chunks, ranks) * Int64.Size() })
	g.unsharded = true
	if forward {
		f.result = g.gathered
	} else {
		t.release(g.gathered)
	}
	g.gathered = nil
	t.release(before)
}

// reshard is FSDPParamGroup.reshard: the unsharded parameters lose their
// memory.
func (f *fsdp) reshard(g *shardGroup) {
	if !g.unsharded {
		return
	}
	g.unsharded = false
	for _, p := range g.params {
		f.t.clear(p.whole.storage)
	}
}

// reduce is foreach_reduce: gradients are concatenated on the current stream,
// and this rank's part of their sum is made on another. It returns the
// concatenation, which lives until the next group's.
func (f *fsdp) reduce(g *shardGroup, params []*shardedParam, grads []*Tensor) *Tensor {
	t := f.t
	dtype := f.how.Reduce
	if dtype == NoDType {
		dtype = grads[0].DType
	}
	total := int64(0)
	var chunks []int64
	for _, p := range params {
		total += p.padded
		chunks = append(chunks, p.padded*dtype.Size())
	}
	input := t.empty(dtype, total*f.how.Ranks)
	t.countTraffic(&t.work.Traffic.Scattered, input.bytes())
	t.release(t.empty(Int64, chunkCat(chunks)))
	last := t.retain(grads[len(grads)-1]) // unsharded_grad, the name of a loop that has ended
	t.releaseList(grads)
	stream := f.reduces
	var output *Tensor
	t.As(trace.Gradient, func() {
		t.on(f.reduces, func() { output = t.empty(dtype, total) })
		if f.how.Copies {
			stream, g.allReduced = f.allReduces, t.retain(output)
			t.countTraffic(&t.work.Traffic.Summed, output.bytes())
		}
		if own := params[0].shard.DType; own != dtype {
			reduced := output
			t.on(stream, func() { output = t.empty(own, total) })
			t.release(reduced)
		}
	})
	if !f.how.Offload {
		for _, p := range params {
			if p.shard.grad == nil { // else it is added in place
				p.shard.grad = t.detach(output)
				p.shard.grad.Shape, p.shard.grad.stride = p.shard.Shape, p.shard.stride
			}
		}
	}
	t.release(last, output)
	return input
}

// The tile sizes, in bytes, of the fused copies in TensorShape.cu.
const (
	copyThreads  = 128
	copyTileSize = 16 * copyThreads
)

// splitWithSizesCopy is how many numbers split_with_sizes_copy_out_cuda sends
// to the card for its kernel: three for each part, one for each block, and
// where each part's blocks begin (aten/src/ATen/native/cuda/TensorShape.cu).
func (d Device) splitWithSizesCopy(parts []int64, chunks int64) int64 {
	blocks := int64(0)
	for _, bytes := range parts {
		blocks += divUp(bytes, copyTileSize)
	}
	most := int64(d.SMs) * int64(d.ThreadsPerSM) / copyThreads * 2
	rounds := divUp(blocks*chunks, most)
	perBlock := min(int64(math.Ceil(math.Sqrt(float64(rounds)))), chunks)
	perChunk := divUp(rounds, perBlock)
	blocks = 0
	for _, bytes := range parts {
		blocks += divUp(bytes, copyTileSize*perChunk)
	}
	n := int64(len(parts))
	return 3*n + blocks + n + 1
}

// chunkCat is how many numbers _chunk_cat_out_cuda sends: four for each tensor,
// one for each block, and twice where each tensor begins
// (get_chunk_cat_metadata).
func chunkCat(tensors []int64) int64 {
	blocks := int64(0)
	for _, bytes := range tensors {
		blocks += divUp(bytes, copyTileSize)
	}
	n := int64(len(tensors))
	return 4*n + blocks + 2*(n+1)
}
