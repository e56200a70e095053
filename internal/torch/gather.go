package torch

// Gather is torch.gather. It saves the indices and its input; its backward adds
// the gradients into zeros (gather_backward,
// torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Gather(x, index X) Value {
	in, at := read(x), read(index)
	n := t.record("Gather", in)
	if n != nil {
		t.save(n, at)
		self := t.save(n, in)
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, self.Shape...) }
	}
	out := t.empty(in.DType, at.Shape...)
	n.setOutputs(out)
	t.done(x, index)
	return Value{out}
}

// Tile is x.repeat(count, 1, ...). Its backward sums the gradients of the
// copies (repeat_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) Tile(x X, count int64) Value {
	in := read(x)
	shape := append([]int64{count * in.Shape[0]}, in.Shape[1:]...)
	out := t.empty(in.DType, shape...)
	if n := t.record("Repeat", in); n != nil {
		apart := append([]int64{count}, in.Shape...)
		n.backward = func(g []*Tensor) []*Tensor {
			if count == 1 {
				return []*Tensor{t.retain(g[0])}
			}
			copies := t.reshapePlain(g[0], apart)
			sum := t.sum(copies, []int{0}, false, copies.DType)
			t.release(copies)
			return []*Tensor{sum}
		}
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// NonzeroAll is x.nonzero() of a row of booleans that are all true.
func (t *Torch) NonzeroAll(x X) Value {
	in := read(x)
	out := t.nonzero(in, in.Numel())
	t.done(x)
	return Value{out}
}

// nonzero is x.nonzero() of booleans, some of them true: CUB counts them, then
// writes their indices (aten/src/ATen/native/cuda/Nonzero.cu,
// nonzero_cuda_out_impl).
func (t *Torch) nonzero(x *Tensor, some int64) *Tensor {
	count := t.empty(Int32, 1)
	n, v := x.Numel(), t.Version
	t.scratchSized(func(d Device) int64 { return d.countTrue(n) })
	out := t.empty(Int64, some, int64(len(x.Shape)))
	t.scratchSized(func(d Device) int64 { return d.selectTrue(v, n) })
	t.release(count)
	return out
}
