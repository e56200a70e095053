package torch

// Work is what a stretch of a process asks of the card and of the processor
// that feeds it, from which the time it takes can be estimated.
type Work struct {
	Products     Operations // of matrices, and in attention
	Convolutions Operations
	Bytes        float64 // results written to memory
	Kernels      int     // results computed: about the number of kernels launched
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
	}
}

func (o Operations) plus(other Operations) Operations {
	return Operations{o.FP32 + other.FP32, o.TF32 + other.TF32, o.Half + other.Half}
}

func (o Operations) times(n float64) Operations {
	return Operations{o.FP32 * n, o.TF32 * n, o.Half * n}
}

func (w Work) plus(other Work) Work {
	return Work{
		Products: w.Products.plus(other.Products), Convolutions: w.Convolutions.plus(other.Convolutions),
		Bytes: w.Bytes + other.Bytes, Kernels: w.Kernels + other.Kernels,
	}
}

func (w Work) times(n int) Work {
	f := float64(n)
	return Work{Products: w.Products.times(f), Convolutions: w.Convolutions.times(f), Bytes: w.Bytes * f, Kernels: w.Kernels * n}
}

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
	}
}
