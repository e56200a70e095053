package torch

// Conv1D is transformers' layer of that name: a Linear whose weight is
// [in, out] (transformers/pytorch_utils.py).
type Conv1D struct{ Weight, Bias *Tensor }

// NewConv1D makes a layer; its weight first.
func (t *Torch) NewConv1D(out, in int64, dtype DType) *Conv1D {
	return &Conv1D{Weight: t.parameter(dtype, in, out), Bias: t.parameter(dtype, out)}
}

// Conv1D is addmm(bias, x.view(-1, in), weight) in the shape of x. Autocast
// casts the arguments of addmm.
func (t *Torch) Conv1D(x X, m *Conv1D) Value {
	in := read(x)
	last := len(in.Shape) - 1
	shape := append(append([]int64{}, in.Shape[:last]...), m.Weight.Shape[1])
	flat := t.view(in, -1, in.Shape[last])
	weight, a, bias := t.lower(m.Weight), t.lower(flat), t.lower(m.Bias)
	product := t.addmm(bias, a, weight)
	t.release(weight, a, bias, flat)
	out := t.view(product, shape...)
	t.release(product)
	t.done(x)
	return Value{out}
}
