package torch

import (
	"math/bits"

	"memorymark/internal/steptime"
)

// This file is the scratch memory of reductions. A reduction whose output is
// small and whose input is large is split over blocks that store partial
// results in global memory (aten/src/ATen/native/cuda/Reduce.cuh, 2.11,
// setReduceConfig).

// reduction is a reduction kernel's view of its input, with dimensions of size
// 1 removed and neighbours joined, fastest first, reduced ones first.
type reduction struct {
	shape   []int64
	stride  []int64 // of the input, in elements
	reduced int     // how many of the first dimensions are reduced
}

// newReduction is TensorIterator's reordering and coalescing.
func (t *Torch) newReduction(x *Tensor, reduced []bool) reduction {
	dims := len(x.Shape)
	out := t.ints.take(dims) // strides of the output decide too
	n := int64(1)
	for i := len(x.Shape) - 1; i >= 0; i-- {
		if !reduced[i] {
			out[i] = n
			n *= x.Shape[i]
		}
	}
	r := reduction{shape: t.ints.take(dims)[:0], stride: t.ints.take(dims)[:0]}
	outStride := t.ints.take(dims)[:0]
	for _, d := range order(x.Shape, reduced, out, x.stride) {
		last := len(r.shape) - 1
		switch {
		case x.Shape[d] == 1:
		case last >= 0 && (r.reduced == last+1) == reduced[d] &&
			r.shape[last]*r.stride[last] == x.stride[d] && r.shape[last]*outStride[last] == out[d]:
			r.shape[last] *= x.Shape[d]
		default:
			r.shape = append(r.shape, x.Shape[d])
			r.stride = append(r.stride, x.stride[d])
			outStride = append(outStride, out[d])
			if reduced[d] {
				r.reduced++
			}
		}
	}
	return r
}

// inputVector is how many inputs a thread loads at once (vt0 of sum and mean).
const inputVector = 4

// reduceScratch allocates partial results and semaphores for a reduction that
// needs them. acc is the size of an accumulator.
func (t *Torch) reduceScratch(x *Tensor, reduced []bool, acc int64) {
	b := t.reduceBlocks(x, reduced, acc)
	buffer := func(d Device) int64 { bytes, _ := b.split(d); return bytes }
	if !t.is(func(d Device) bool { return buffer(d) > 0 }) {
		return
	}
	partial, semaphores := t.allocateSized(buffer), t.allocateSized(func(d Device) int64 { _, bytes := b.split(d); return bytes })
	t.drop(semaphores)
	t.drop(partial)
}

// reduceBlocks is the first half of setReduceConfig, which no card decides.
func (t *Torch) reduceBlocks(x *Tensor, reduced []bool, acc int64) blockShape {
	r := t.newReduction(x, reduced)
	outputs, inputs := int64(1), int64(1)
	for i, s := range r.shape {
		if i < r.reduced {
			inputs *= s
		} else {
			outputs *= s
		}
	}
	onFastest := true
	dim0, dim1 := int64(1), int64(1)
	vector := int64(1) // output_vec_size
	if len(r.shape) > 0 {
		onFastest = r.reduced == len(r.shape) || r.reduced > 0 && r.stride[0] < r.stride[r.reduced]
		fastest := r.stride[0]
		if onFastest {
			dim0, dim1 = inputs, outputs
		} else {
			dim0, dim1 = outputs, inputs
			fastest = r.stride[r.reduced]
		}
		if fastest == 1 {
			if onFastest && dim0 >= 128 && r.reduced == 1 {
				dim0 /= inputVector
			} else if !onFastest {
				vector = r.outputVector()
				dim0 /= vector
			}
		}
	}
	return blockShape{dim0, dim1, vector, onFastest, outputs, inputs, acc}
}

// outputVector is get_output_vec_size: how many outputs a thread handles. The
// address of the input is assumed to be aligned, as blocks are.
func (r *reduction) outputVector() int64 {
	v := int64(4)
	fit := func(n int64) {
		for n%v != 0 {
			v /= 2
		}
	}
	fit(r.shape[r.reduced])
	for i, s := range r.stride {
		if i != r.reduced {
			fit(s)
		}
	}
	return v
}

type blockShape struct {
	dim0, dim1 int64
	vector     int64
	onFastest  bool
	outputs    int64
	inputs     int64
	acc        int64 // bytes of an accumulator
}

// split is the second half of setReduceConfig: the bytes of partial results and of
// semaphores.
func (b blockShape) split(d Device) (buffer, semaphores int64) {
	const (
		maxThreads   = 512
		warp         = 32
		minPerThread = 16
		maxPerThread = 256
	)
	threads := maxThreads / b.vector
	pow0, pow1 := min(lastPowerOf2(b.dim0), threads), min(lastPowerOf2(b.dim1), threads)
	width := min(pow0, warp)
	height := min(pow1, threads/width)
	width = min(pow0, threads/height)

	stepInput, stepOutput := int64(1), int64(1)
	if b.onFastest {
		stepInput *= width
	} else {
		stepOutput *= width
	}
	perThread := func() int64 { return divUp(b.inputs, stepInput) }
	acrossWarps := perThread() >= min(height*16, maxPerThread)
	if acrossWarps {
		stepInput *= height
	} else {
		stepOutput *= height
	}
	target := int64(d.SMs) * (int64(d.ThreadsPerSM) / (width * height))
	grid := divUp(b.outputs/b.vector, stepOutput)
	if !acrossWarps || perThread() < maxPerThread || grid > target {
		return 0, 0
	}
	ctas := max(min(divUp(target, grid), divUp(perThread(), minPerThread)), divUp(perThread(), maxPerThread))
	if ctas <= 1 {
		return 0, 0
	}
	buffer = b.acc * b.outputs * ctas
	if !b.onFastest {
		buffer *= width * b.vector
	}
	return buffer, 4 * grid
}

func lastPowerOf2(n int64) int64 {
	if n < 1 {
		return 1
	}
	return 1 << (bits.Len64(uint64(n)) - 1)
}

func divUp(a, b int64) int64 { return (a + b - 1) / b }

// sum reduces dimensions (aten::sum, mean): the result, then the scratch. Half
// types accumulate in float32.
func (t *Torch) sum(x *Tensor, dims []int, keep bool, dtype DType) *Tensor {
	reduced := make([]bool, len(x.Shape))
	for _, d := range dims {
		reduced[(d+len(x.Shape))%len(x.Shape)] = true
	}
	shape := t.ints.take(len(x.Shape))[:0]
	for i, s := range x.Shape {
		switch {
		case !reduced[i]:
			shape = append(shape, s)
		case keep:
			shape = append(shape, 1)
		}
	}
	since, kind := t.moment(), steptime.SumRows
	out := t.empty(dtype, shape...)
	t.reduceScratch(x, reduced, 4)
	if n := len(reduced); n > 0 && reduced[n-1] {
		kind = steptime.SumColumns
	}
	t.noteFused(since, kind, x.DType, float64(x.bytes()))
	return out
}

// sumTo reduces a gradient to the shape of a tensor that was broadcast
// (at::sum_to).
func (t *Torch) sumTo(grad *Tensor, shape []int64) *Tensor {
	leading := len(grad.Shape) - len(shape)
	var dims []int
	for i := range grad.Shape {
		if i < leading || shape[i-leading] == 1 && grad.Shape[i] != 1 {
			dims = append(dims, i)
		}
	}
	if len(dims) == 0 {
		return t.retain(grad)
	}
	out := t.sum(grad, dims, true, grad.DType)
	if leading == 0 {
		return out
	}
	view := t.alias(out, shape, fillStrides(t.ints.take(len(shape)), shape)) // never accumulated in place
	t.release(out)
	return view
}
