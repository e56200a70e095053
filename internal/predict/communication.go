package predict

import (
	"memorymark/internal/gpu"
	"memorymark/internal/torch"
	"memorymark/internal/workload"
)

// This file estimates how long the GPUs of a job wait for each other. It is a
// coarse model: bytes over what NCCL's large collectives reach on a link, by
// rings, hidden behind what is computed at the same time. What a collective
// costs to start, and that its kernels take multiprocessors from others, is left
// out. communication_test.go holds it to published tables.

// parts is what the parts of a step ask of the card. Passes that others stand
// for do not count.
type parts struct {
	forward, backward torch.Work
	update            torch.Work // by the optimizer, and what else there is
	passes            int        // of each kind
}

// countPart adds what the latest span asked of the card to its part.
func (p *Process) countPart() {
	now := p.t.Work()
	if len(p.spans) > 0 {
		into := &p.parts.update
		switch p.spans[len(p.spans)-1].phase {
		case forward:
			into = &p.parts.forward
		case backward:
			into = &p.parts.backward
		default:
		}
		*into = into.Plus(now.Minus(p.began))
	}
	p.began = now
}

// meanPasses is how many passes of a step the work of one is the mean of: the first
// one, which makes the gradients, and others, which add to them.
const meanPasses = 4

// countAgain counts what came since so many times more: a pass counts for those that
// it stands for, too.
func (p *parts) countAgain(since parts, times int) {
	n := float64(max(times, 0))
	p.forward = p.forward.Plus(p.forward.Minus(since.forward).Times(n))
	p.backward = p.backward.Plus(p.backward.Minus(since.backward).Times(n))
	p.update = p.update.Plus(p.update.Minus(since.update).Times(n))
	p.passes += max(times, 0)
}

// Timing is the work of an update by its parts.
type Timing struct {
	Forward, Backward torch.Work // of one pass
	Update            torch.Work // by the optimizer
	in                workload.Precision
}

// Timing splits the work of the last step.
func (p *Process) Timing() Timing {
	share := 1 / float64(max(p.parts.passes, 1))
	return Timing{p.parts.forward.Times(share), p.parts.backward.Times(share), p.parts.update, p.w.Precision}
}

// Towards is the timing that lies a share of the way towards another's.
func (t Timing) Towards(other Timing, share float64) Timing {
	return Timing{
		t.Forward.Towards(other.Forward, share), t.Backward.Towards(other.Backward, share), t.Update.Towards(other.Update, share), t.in,
	}
}

// Seconds are how long an update takes.
type Seconds struct {
	Computing float64 `json:"computing_seconds"` // as if nobody waited for others
	Waiting   float64 `json:"waiting_seconds"`   // for others, beside what is computed
}

// Total is all of it.
func (s Seconds) Total() float64 { return s.Computing + s.Waiting }

// Efficiency is the share of the time that is computed.
func (s Seconds) Efficiency() float64 { return s.Computing / s.Total() }

// Seconds estimates how long an update of so many passes takes on cards that
// share it so; nil is one card.
func (t Timing) Seconds(card *gpu.Card, p *workload.Parallel, passes int64) Seconds {
	all := t.Forward.Plus(t.Backward).Times(float64(passes)).Plus(t.Update)
	return Seconds{Computing: stepSeconds(all, card, t.in), Waiting: t.waiting(card, p, passes)}
}

// waiting is how long GPUs wait for each other in an update.
func (t Timing) waiting(card *gpu.Card, p *workload.Parallel, passes int64) float64 {
	r, ok := ratesOf(p, card)
	if !ok {
		return 0
	}
	forward, backward := stepSeconds(t.Forward, card, t.in), stepSeconds(t.Backward, card, t.in)
	if p.Kind == workload.Pipeline {
		return bubble(p, forward+backward)
	}
	return float64(passes)*(r.waiting(t.Forward.Traffic, forward)+r.waiting(t.Backward.Traffic, backward)) + r.waiting(t.Update.Traffic, 0)
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

// ratesOf are those of a job on machines with so many cards.
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
// backward goes on, so that what is left is what takes longer than the pass,
// and one collective at its end or its beginning, for which there is nothing to
// do. What ranks that share matrices sum, all wait for.
func (r rates) waiting(t torch.Traffic, computing float64) float64 {
	hidden := r.shard.ring(t.Gathered+t.Scattered) + 2*r.copies.ring(t.Summed)
	first := hidden / max(t.Collectives, hiddenBuckets(t.Summed), 1)
	return max(hidden-computing, 0) + min(first, computing) + 2*r.tensor.ring(t.TensorSummed) + r.copies.ring(t.Broadcast)
}

// hiddenBuckets is how many buckets of DDP's default size gradients fill
// (bucket_cap_mb of torch.nn.parallel.DistributedDataParallel).
func hiddenBuckets(bytes float64) float64 { return bytes / (25 << 20) }
