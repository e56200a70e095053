package torch

// Conv1D is transformers' layer of that name: a Linear whose weight is
// [in, out] (transformers/pytorch_utils.py).
type Conv1D struct{ *Linear }

// NewConv1D makes a layer; its weight first.
func (t *Torch) NewConv1D(out, in int64, dtype DType) *Conv1D {
	m := &Linear{Weight: t.parameter(dtype, in, out), Bias: t.bias(dtype, out), conv1D: true}
	t.linears = append(t.linears, m)
	return &Conv1D{m}
}

// Named is Linear.Named.
func (m *Conv1D) Named(name string) *Conv1D {
	m.name = name
	return m
}

// Conv1D is addmm(bias, x.view(-1, in), weight) in the shape of x. Autocast
// casts the arguments of addmm.
func (t *Torch) Conv1D(x X, m *Conv1D) Value {
	return t.Linear(x, m.Linear)
}

func (t *Torch) conv1D(x X, m *Linear) Value {
	in := read(x)
	last := len(in.Shape) - 1
	shape := append(append([]int64{}, in.Shape[:last]...), m.Weight.Shape[1])
	flat := t.view(in, -1, in.Shape[last])
	weight, a, bias := t.lower(m.Weight), t.lower(flat), t.lower(m.Bias)
	product := t.addmm(bias, a, weight)
	t.release(bias, a, weight, flat) // the last one cast is freed last
	out := t.view(product, shape...)
	t.release(product)
	t.done(x)
	return Value{out}
}
