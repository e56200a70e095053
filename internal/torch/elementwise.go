package torch

import "memorymark/internal/steptime"

// This file holds operators that compute elements from elements.

// unary makes an operator of one input whose backward allocates one tensor of
// its size.
func (t *Torch) unary(name string, x X, saveResult bool) Value {
	in := read(x)
	out := t.pointwise(in.DType, in)
	if n := t.record(name, in); n != nil {
		saved := in
		if saveResult {
			saved = out
		}
		saved = t.save(n, saved)
		n.gradient = func(g *Tensor) *Tensor { return t.pointwise(g.DType, g, saved) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// GELU is torch.nn.functional.gelu, exact or by tanh: it saves its input.
func (t *Torch) GELU(x X) Value { return t.unary("Gelu", x, false) }

// SiLU saves its input.
func (t *Torch) SiLU(x X) Value { return t.unary("Silu", x, false) }

// Softplus is on autocast's fp32 list. It saves its input.
func (t *Torch) Softplus(x X) Value { return t.Unary("Softplus", x) }

// ReLU saves its result; the gradient has the same layout
// (aten/src/ATen/native/Activation.cpp, threshold_backward).
func (t *Torch) ReLU(x X) Value {
	in := read(x)
	out := t.pointwise(in.DType, in)
	if n := t.relu(in, out); n != nil {
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// ReLUInPlace is nn.ReLU(inplace=True): the tensor stays, and becomes the result
// of a new node.
func (t *Torch) ReLUInPlace(x *Var) {
	t.kernel(steptime.Kernel, x.tensor.DType, float64(2*x.tensor.bytes()))
	if n := t.relu(x.tensor, x.tensor); n != nil {
		t.setHistory(x.tensor, n)
	}
}

func (t *Torch) relu(in, out *Tensor) *node {
	n := t.record("Relu", in)
	if n != nil {
		result := t.save(n, out)
		n.gradient = func(g *Tensor) *Tensor { return t.pointwise(g.DType, result, g) }
	}
	return n
}

// Tanh saves its result.
func (t *Torch) Tanh(x X) Value { return t.unary("Tanh", x, true) }

// Add is a + b. It passes the same gradient to both; the engine sums it where
// one was broadcast.
func (t *Torch) Add(a, b X) Value {
	x, y := read(a), read(b)
	out := t.pointwise(resultType(x, y), x, y)
	if n := t.record("Add", x, y); n != nil {
		n.backward = func(g []*Tensor) []*Tensor { return t.handOn(n, g[0]) }
		n.setOutputs(out)
	}
	t.done(a, b)
	return Value{out}
}

// Sub is a - b. Its backward negates the gradient of b first, then passes the
// gradient to a (tools/autograd/derivatives.yaml, sub.Tensor).
func (t *Torch) Sub(a, b X) Value {
	x, y := read(a), read(b)
	out := t.pointwise(resultType(x, y), x, y)
	if n := t.record("Sub", x, y); n != nil {
		n.backward = func(g []*Tensor) []*Tensor {
			out := t.lists.take(2)
			if n.wants(1) {
				out[1] = t.pointwise(g[0].DType, g[0])
			}
			if n.wants(0) {
				out[0] = t.retain(g[0])
			}
			return out
		}
		n.setOutputs(out)
	}
	t.done(a, b)
	return Value{out}
}

// AddInPlace is a += b: the tensor stays, and becomes the result of a new node.
func (t *Torch) AddInPlace(a *Var, b X) {
	x, y := a.tensor, read(b)
	t.noteUpdate(x, y)
	if n := t.record("Add", x, y); n != nil {
		n.backward = func(g []*Tensor) []*Tensor { return t.handOn(n, g[0]) }
		old := x.fn
		n.setOutputs(x)
		if old != nil {
			t.releaseNode(old)
		}
	}
	t.done(b)
}

// promote is c10::promoteTypes for the floats.
func promote(a, b DType) DType {
	if a == b {
		return a
	}
	if a.IsFloat() && b.IsFloat() {
		return Float32 // two different halves, or one of them and float32
	}
	if a.IsFloat() {
		return a
	}
	return b
}

// Dropout is native_dropout: a mask of bytes, then the result. With p = 0 or in
// evaluation it returns the input itself (aten/src/ATen/native/Dropout.cpp).
func (t *Torch) Dropout(x X, p float64, training bool) Value {
	in := read(x)
	if p == 0 || !training {
		return Value{t.own(x)}
	}
	since := t.moment()
	mask := t.emptyLike(in, Bool)
	out := t.emptyLike(in, in.DType)
	t.noteFused(since, steptime.Dropout, in.DType, float64(2*in.bytes()+mask.bytes()))
	if n := t.record("NativeDropout", in); n != nil {
		mask := t.save(n, mask)
		n.gradient = func(g *Tensor) *Tensor { return t.pointwise(g.DType, g, mask) }
		n.setOutputs(out)
	}
	t.release(mask)
	t.done(x)
	return Value{out}
}

// DropoutInPlace is dropout with inplace=True, which is no kernel of its own: factors of the
// input's type are drawn and multiplied with (aten/src/ATen/native/Dropout.cpp,
// _dropout_impl).
func (t *Torch) DropoutInPlace(x *Var) {
	noise := t.Full(x.tensor.DType, x.tensor.Shape...)
	t.MulInPlace(x, noise)
}

// FeatureDropout is dropout1d, dropout2d or dropout3d: one factor for each channel, likewise.
func (t *Torch) FeatureDropout(x X) Value {
	in := read(x)
	channels := t.cloneInts(in.Shape)
	for i := 2; i < len(channels); i++ {
		channels[i] = 1
	}
	return t.Mul(x, t.Full(in.DType, channels...))
}

// Mean is x.mean() over everything; its backward makes a tensor of the full
// size, not an expanded one.
func (t *Torch) Mean(x X) Value {
	in := read(x)
	out := t.sum(in, allDims(in), false, in.DType)
	if n := t.record("Mean", in); n != nil {
		shape := in.Shape
		n.gradient = func(g *Tensor) *Tensor { return t.empty(g.DType, shape...) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}
