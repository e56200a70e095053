package torch

// SumBools is x.sum() of booleans: an int64, summed from a copy in int64, as
// the kernel does not cast while it reads (aten/src/ATen/native/ReduceOps.cpp,
// sum; TensorIterator casts what the kernel cannot).
func (t *Torch) SumBools(x X) Value {
	in := read(x)
	out := t.empty(Int64)
	wide := t.emptyLike(in, Int64)
	all := make([]bool, len(in.Shape))
	for i := range all {
		all[i] = true
	}
	if buffer, semaphores := t.reduceScratch(wide, all, Int64.Size()); buffer > 0 {
		b, s := t.allocate(buffer), t.allocate(semaphores)
		t.drop(s)
		t.drop(b)
	}
	t.release(wide)
	t.done(x)
	return Value{out}
}
