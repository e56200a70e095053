package predict

import (
	"memorymark/internal/gpu"
	"memorymark/internal/steptime"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// This file estimates how long the GPUs of a job wait for each other: bytes over what
// NCCL's large collectives reach on a link, by rings, and what each of them takes to
// start, hidden behind what is computed at the same time. That their kernels take
// multiprocessors from others is left out. communication_test.go compares it with
// collectives that others timed, with published tables and with steps of Megatron.

// starting is how many seconds a collective takes in addition to its bytes, from 20 to 70 µs
// among two to eight cards (collectives.csv of internal/steptime/testdata/kernels).
const starting = 35e-6

// offOfLinks is within which share of the truth four of five collectives are of those
// that others timed.
const offOfLinks = 0.3

// aroundLinks is the range around an estimated time of waiting.
func aroundLinks(seconds float64) steptime.Range {
	return steptime.Range{Low: seconds / (1 + offOfLinks), High: seconds * (1 + offOfLinks)}
}

// waiting is how long GPUs wait for each other in an update of passes that take so long.
func (t Timing) waiting(card *gpu.Card, p *workload.Parallel, passes int64, forward, backward float64) float64 {
	r, ok := ratesOf(p, card)
	if !ok {
		return 0
	}
	if p.Kind == workload.Pipeline {
		return bubble(p, forward+backward)
	}
	return float64(passes)*(r.waiting(t.forward.Traffic, forward)+r.waiting(t.backward.Traffic, backward)) + r.waiting(t.update.Traffic, 0)
}

// rates are how many bytes a second the ranks of a job exchange, by what they
// are, and how many ranks take part.
type rates struct {
	shard, copies, tensor group
}

// group are ranks that do collectives together.
type group struct {
	ranks          int64
	bytesPerSecond float64
}

// ratesOf are those of a job on machines with that many cards.
func ratesOf(p *workload.Parallel, card *gpu.Card) (r rates, ok bool) {
	link := card.Link()
	if p == nil || link == nil {
		return r, false
	}
	all := group{p.GPUs, link.BusBytesPerSecond(p.GPUs)}
	apart := link.BytesPerSecond() // of ranks that may be in different machines
	if p.GPUs > gpu.MachineGPUs {
		apart = link.AcrossBytesPerSecond()
	}
	switch p.Kind {
	case workload.FSDP:
		r.shard = all
	case workload.HSDP:
		r.shard, r.copies = group{p.Shard, link.BusBytesPerSecond(p.Shard)}, group{p.GPUs / p.Shard, apart}
	case workload.TensorParallel:
		r.tensor = all
	case workload.FSDPWithTensor:
		r.shard, r.tensor = group{p.GPUs / p.Tensor, apart}, group{p.Tensor, link.BusBytesPerSecond(p.Tensor)}
	default:
		r.copies = all
	}
	return r, true
}

// ring is how long a ring takes that sends a tensor once around: what an
// all-gather and a reduce-scatter do. An all-reduce does both.
func (g group) ring(bytes float64) float64 {
	if g.ranks < 2 {
		return 0
	}
	return bytes * float64(g.ranks-1) / float64(g.ranks) / g.bytesPerSecond
}

// waiting is how long a pass waits for others. FSDP gathers the next layer and
// scatters the last one while a layer computes, and DDP sums a bucket while
// backward continues, so that what is left is what takes longer than the pass,
// and one collective at its end or its beginning, for which there is nothing to
// do. What ranks that share matrices sum, all wait for.
func (r rates) waiting(t torch.Traffic, computing float64) float64 {
	buckets := hiddenBuckets(t.Summed)
	calls := max(t.Collectives, buckets)
	transfers := r.shard.ring(t.Gathered+t.Scattered) + 2*r.copies.ring(t.Summed)
	tensors := 2*r.tensor.ring(t.TensorSummed) + r.copies.ring(t.Broadcast)
	if t.TensorSummed > 0 {
		tensors += calls * starting
	} else if transfers > 0 {
		transfers += calls * starting
	}
	first := transfers / max(calls, 1)
	return max(transfers-computing, 0) + min(first, computing) + tensors
}

// hiddenBuckets is how many buckets of DDP's default size gradients fill
// (bucket_cap_mb of torch.nn.parallel.DistributedDataParallel).
func hiddenBuckets(bytes float64) float64 { return bytes / (25 << 20) }
