package torch

// Work is what a stretch of a process asks of the card and of the processor
// that feeds it, from which the time it takes can be estimated.
type Work struct {
	Products     Operations // of matrices, and in attention
	Convolutions Operations
	Bytes        float64 // results written to memory
	Kernels      int     // results computed: about the number of kernels launched
	Traffic      Traffic
}

// Traffic is what the ranks of a job send each other: the bytes of the whole
// tensor that each collective is about, by what it does with them.
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

// sent counts a collective in one of the sums.
func (t *Torch) sent(sum *float64, bytes int64) {
	*sum += float64(bytes)
	t.work.Traffic.Collectives++
}

// Operations counts multiplications and additions by the unit that does them:
// the ordinary cores, or tensor cores on float32 or on half types.
type Operations struct{ FP32, TF32, Half float64 }

func (o Operations) minus(before Operations) Operations {
	return Operations{o.FP32 - before.FP32, o.TF32 - before.TF32, o.Half - before.Half}
}

// Minus is the work done since an earlier moment.
func (w Work) Minus(before Work) Work {
	return Work{
		Products: w.Products.minus(before.Products), Convolutions: w.Convolutions.minus(before.Convolutions),
		Bytes: w.Bytes - before.Bytes, Kernels: w.Kernels - before.Kernels,
		Traffic: w.Traffic.combine(before.Traffic, func(a, b float64) float64 { return a - b }),
	}
}

// Plus is the work of two stretches.
func (w Work) Plus(other Work) Work { return w.Minus(Work{}.Minus(other)) }

// Times is the work of so many such stretches.
func (w Work) Times(n float64) Work { return Work{}.Towards(w, n) }

// Work returns all work done so far.
func (t *Torch) Work() Work { return t.work }

// multiplied counts the operations of a matrix product, a multiplication and
// an addition as two.
func (t *Torch) multiplied(dtype DType, operations int64) {
	t.count(&t.work.Products, dtype, operations)
}

// convolved counts the operations of a convolution.
func (t *Torch) convolved(dtype DType, operations int64) {
	t.count(&t.work.Convolutions, dtype, operations)
}

func (t *Torch) count(o *Operations, dtype DType, operations int64) {
	switch {
	case dtype.IsHalf():
		o.Half += float64(operations)
	case t.TF32:
		o.TF32 += float64(operations)
	default:
		o.FP32 += float64(operations)
	}
}

// wrote counts a kernel and what it writes.
func (t *Torch) wrote(bytes int64) {
	t.work.Bytes += float64(bytes)
	t.work.Kernels++
}

// Towards is the work that lies a share of the way towards another's.
func (w Work) Towards(other Work, share float64) Work {
	between := func(a, b float64) float64 { return a + share*(b-a) }
	operations := func(a, b Operations) Operations {
		return Operations{between(a.FP32, b.FP32), between(a.TF32, b.TF32), between(a.Half, b.Half)}
	}
	return Work{
		Products: operations(w.Products, other.Products), Convolutions: operations(w.Convolutions, other.Convolutions),
		Bytes: between(w.Bytes, other.Bytes), Kernels: int(between(float64(w.Kernels), float64(other.Kernels))),
		Traffic: w.Traffic.combine(other.Traffic, between),
	}
}
