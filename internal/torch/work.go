package torch

import (
	"slices"

	"memorymark/internal/steptime"
	"memorymark/internal/trace"
)

// Work is what a part of a process asks of the card and of the CPU that feeds
// it, from which its time can be estimated.
type Work struct {
	Launches steptime.Launches
	Nodes    float64 // of autograd, that its thread ran or made
	Traffic  Traffic
}

// Traffic is what the ranks of a job send each other: the bytes of the whole
// tensor of each collective, by kind.
type Traffic struct {
	Gathered     float64 // all-gathers of sharded parameters
	Scattered    float64 // reduce-scatters of their gradients
	Summed       float64 // all-reduces of gradients among copies of the model
	TensorSummed float64 // all-reduces among ranks that share matrices
	Broadcast    float64 // parameters, from the rank that updates them
	Collectives  float64 // how many there are
}

func (t Traffic) combine(other Traffic, with func(a, b float64) float64) Traffic {
	return Traffic{
		with(t.Gathered, other.Gathered), with(t.Scattered, other.Scattered), with(t.Summed, other.Summed),
		with(t.TensorSummed, other.TensorSummed), with(t.Broadcast, other.Broadcast), with(t.Collectives, other.Collectives),
	}
}

// Times multiplies the amounts.
func (t Traffic) Times(n float64) Traffic {
	return t.combine(Traffic{}, func(a, _ float64) float64 { return n * a })
}

// Plus adds amounts.
func (t Traffic) Plus(other Traffic) Traffic {
	return t.combine(other, func(a, b float64) float64 { return a + b })
}

// Towards interpolates between two amounts.
func (t Traffic) Towards(other Traffic, share float64) Traffic {
	return t.combine(other, func(a, b float64) float64 { return a + share*(b-a) })
}

// countTraffic adds a collective to one of the sums.
func (t *Torch) countTraffic(sum *float64, bytes int64) {
	*sum += float64(bytes)
	t.work.Traffic.Collectives++
}

// Since is the work done since an earlier moment.
func (w Work) Since(before Work) Work {
	return Work{w.Launches[len(before.Launches):], w.Nodes - before.Nodes, w.Traffic.Plus(before.Traffic.Times(-1))}
}

// Plus adds two amounts of work.
func (w Work) Plus(other Work) Work {
	return Work{slices.Concat(w.Launches, other.Launches), w.Nodes + other.Nodes, w.Traffic.Plus(other.Traffic)}
}

// Add adds an amount of work to one that has no other owner.
func (w *Work) Add(other Work) {
	w.Launches, w.Nodes, w.Traffic = append(w.Launches, other.Launches...), w.Nodes+other.Nodes, w.Traffic.Plus(other.Traffic)
}

// Times multiplies an amount of work.
func (w Work) Times(n float64) Work {
	return Work{w.Launches.Times(n), n * w.Nodes, w.Traffic.Times(n)}
}

// Work returns all work done so far.
func (t *Torch) Work() Work { return t.work }

// kernel notes a kernel.
func (t *Torch) kernel(k steptime.Kind, dtype DType, size ...float64) {
	t.work.Launches.Add(k, t.typeOf(k, dtype), t.thread == 1, size...)
}

// moment is where the list of launches is now.
func (t *Torch) moment() int { return len(t.work.Launches) }

// noteFused says that what was launched since a moment is one kernel.
func (t *Torch) noteFused(since int, k steptime.Kind, dtype DType, size ...float64) {
	t.work.Launches = t.work.Launches[:since]
	t.kernel(k, dtype, size...)
}

// typeOf is what a kernel computes in on tensors of a type.
func (t *Torch) typeOf(k steptime.Kind, dtype DType) steptime.Type {
	switch {
	case dtype == BFloat16:
		return steptime.BF16
	case dtype == Float16:
		return steptime.FP16
	case dtype == Float32 && t.TF32 && (k == steptime.Product || k == steptime.Convolution):
		return steptime.TF32
	}
	return steptime.FP32
}

// countWrite notes a kernel that writes a tensor, from one of the same size. What
// an operator knows better, it says itself.
func (t *Torch) countWrite(dtype DType, bytes int64) {
	if t.category != trace.Parameter && t.category != trace.Input && t.meta == nil {
		t.kernel(steptime.Kernel, dtype, 2*float64(bytes))
	}
}

// noteUpdate notes a kernel that changes a tensor in place by another one.
func (t *Torch) noteUpdate(x, by *Tensor) {
	t.kernel(steptime.Kernel, x.DType, float64(2*x.bytes()+by.bytes()))
}

// product notes a product of matrices, or of count of them, in place of what the
// result's memory stands for.
func (t *Torch) product(since int, a, b *Tensor) {
	if t.trace.Launched > 0 && t.trace.TensorCores == 0 && (a.DType.Size() == 2 || a.DType == Float32 && t.TF32) {
		t.trace.TensorCores = len(t.trace.Events)
	}
	last := len(a.Shape) - 1
	m, k, n := a.Shape[last-1], a.Shape[last], b.Shape[last]
	count := product(a.Shape[:last-1])
	rowsLeft, rowsRight := a.stride[last] == 1, b.stride[last] == 1 && b.stride[last-1] != 1
	layout, left, right := steptime.InputLayout, k, n
	switch {
	case rowsLeft && !rowsRight:
		layout, right = steptime.ForwardLayout, k
	case !rowsLeft:
		layout, left = steptime.WeightLayout, m
	}
	t.noteFused(since, steptime.Product, a.DType, float64(m), float64(n), float64(k), float64(count), float64(layout),
		float64(alignment(a.DType.Size(), left, right, n)))
}

// alignment is the largest power of 2, up to 16 bytes, of which all rows are multiples.
func alignment(size int64, rows ...int64) int64 {
	aligned := int64(16)
	for _, n := range rows {
		for n*size%aligned != 0 {
			aligned /= 2
		}
	}
	return aligned
}

// noteConvolution notes a convolution, in place of what was launched since a moment.
func (t *Torch) noteConvolution(since int, in, out, weight []int64, dtype DType, last bool, direction float64) {
	channels := 0.
	if last {
		channels = 1
	}
	groups := in[1] / max(weight[1], 1)
	t.noteFused(since, steptime.Convolution, dtype, direction, float64(in[0]), float64(in[1]), float64(weight[0]),
		float64(product(weight[2:])), float64(product(in[2:])), float64(product(out[2:])), float64(groups), channels)
}
