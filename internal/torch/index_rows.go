package torch

import "math/bits"

// IndexRows is x[a, b] of a tensor of three dimensions: a row for each pair of
// indices, both of the shape [n]. They are kept for backward.
func (t *Torch) IndexRows(x, a, b X) Value {
	in, first, second := read(x), read(a), read(b)
	out := t.empty(in.DType, first.Dim(0), in.Dim(-1))
	if n := t.record("Index", in); n != nil {
		rows, largest := first.Numel(), in.Numel()-1
		t.save(n, first)
		t.save(n, second)
		n.backward = func([]*Tensor) []*Tensor {
			grad := t.empty(in.DType, in.Shape...)
			t.indexPut(rows, largest)
			return []*Tensor{grad}
		}
		n.made(out)
	}
	t.done(x, a, b)
	return Value{out}
}

// indexPut is index_put_ that accumulates: both indices become one, places in
// memory, by which the rows are sorted and then added
// (aten/src/ATen/native/cuda/Indexing.cu, index_put_with_sort_kernel).
func (t *Torch) indexPut(n, largest int64) {
	wrapped := t.empty(Int64, n) // remainder
	linear := t.empty(Int64, n)  // times the stride
	t.release(wrapped)
	wrapped = t.empty(Int64, n)
	strided := t.empty(Int64, n)
	t.release(wrapped, strided) // added in place
	sorted, original := t.empty(Int64, n), t.empty(Int64, n)
	t.scratchWith(t.Device.radixSortPairs(n, bits.Len64(uint64(largest))), t.empty(Int64, n)) // arange
	t.release(original, sorted, linear)
}

// ArgMaxLast is x.argmax(-1) of int32, which keeps a value and its place while
// it reduces.
func (t *Torch) ArgMaxLast(x X) Value {
	in := read(x)
	out := t.empty(Int64, in.Shape[:len(in.Shape)-1]...)
	reduced := make([]bool, len(in.Shape))
	reduced[len(reduced)-1] = true
	const accumulator = 16
	if buffer, semaphores := t.reduceScratch(in, reduced, accumulator); buffer != 0 {
		b, s := t.allocate(buffer), t.allocate(semaphores)
		t.drop(s)
		t.drop(b)
	}
	t.done(x)
	return Value{out}
}
