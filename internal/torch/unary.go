package torch

// This file holds operators of one tensor whose gradient is a product of few
// factors (tools/autograd/derivatives.yaml).

// unaryRule says what an operator saves and what its backward makes before the
// gradient.
type unaryRule struct {
	result bool // saved instead of the input
	none   bool // nothing is saved: the gradient is zeros, or follows from the incoming one
	upper  bool // autocast computes it in float32
	// temporaries of backward, by how many of them live when the gradient is made. A
	// temporary is a factor of the saved tensor's type.
	temporaries int
}

var unaryRules = map[string]unaryRule{
	"Sin": {temporaries: 1}, "Cos": {temporaries: 2}, "Tan": {result: true, upper: true, temporaries: 2},
	"Log": {upper: true}, "Log1P": {upper: true, temporaries: 1}, "Log2": {upper: true, temporaries: 1}, "Log10": {upper: true, temporaries: 1},
	"Expm1": {result: true, upper: true, temporaries: 1}, "Sqrt": {result: true, temporaries: 1}, "Abs": {temporaries: 1},
	"Reciprocal": {result: true, upper: true, temporaries: 2}, "Sinh": {upper: true, temporaries: 1}, "Cosh": {upper: true, temporaries: 1},
	"Erf": {temporaries: 4}, "Sigmoid": {result: true}, "Tanh": {result: true}, "Relu": {result: true},
	"Floor": {none: true}, "Ceil": {none: true}, "Round": {none: true}, "Sign": {none: true}, "Trunc": {none: true},
	"Hardswish": {}, "Hardsigmoid": {}, "Hardtanh": {}, "LeakyRelu": {}, "Elu": {}, "Mish": {}, "Gelu": {}, "Silu": {}, "Softplus": {upper: true},
	"LogSigmoid": {}, "Hardshrink": {}, "Softshrink": {}, "Celu": {}, "Selu": {}, "Atan": {temporaries: 2},
	"Acos": {upper: true, temporaries: 4}, "Asin": {upper: true, temporaries: 3},
}

// Unary is an operator of one tensor, by the name of its node.
func (t *Torch) Unary(name string, x X) Value {
	rule := unaryRules[name]
	in := t.retain(read(x))
	if rule.upper {
		in = t.replace(in, t.upper(in))
	}
	out := t.pointwise(in.DType, in)
	if n := t.record(name, in); n != nil {
		n.gradient = t.unaryGradient(n, rule, in, out)
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

func (t *Torch) unaryGradient(n *node, rule unaryRule, in, out *Tensor) func(g *Tensor) *Tensor {
	if rule.none {
		return func(g *Tensor) *Tensor { return t.emptyLike(g, g.DType) }
	}
	saved := in
	if rule.result {
		saved = out
	}
	saved = t.save(n, saved)
	return func(g *Tensor) *Tensor {
		factors := make([]*Tensor, rule.temporaries)
		for i := range factors {
			factors[len(factors)-1-i] = t.pointwise(saved.DType, saved)
		}
		grad := t.pointwise(resultType(g, saved), g, saved)
		t.release(factors...)
		return grad
	}
}

// UnaryInPlace is the operator in place: the tensor stays, and becomes the result of a
// new node. An input that backward needs is copied before it changes.
func (t *Torch) UnaryInPlace(name string, x *Var) {
	in, rule := x.tensor, unaryRules[name]
	if !t.needsGrad(in) {
		return
	}
	was := in
	if !rule.result && !rule.none {
		was = t.emptyLike(in, in.DType)
	} else {
		t.retain(was)
	}
	n := t.record(name, in)
	n.gradient = t.unaryGradient(n, rule, was, in)
	t.release(was)
	t.setHistory(in, n)
}

// Glu is torch.nn.functional.glu: half of a dimension, gated by the other half. It saves
// its input.
func (t *Torch) Glu(x X, dim int) Value {
	in := read(x)
	shape := t.cloneInts(in.Shape)
	shape[(dim+len(shape))%len(shape)] /= 2
	out := t.empty(in.DType, shape...)
	if n := t.record("Glu", in); n != nil {
		self := t.save(n, in)
		n.gradient = func(*Tensor) *Tensor { return t.empty(self.DType, self.Shape...) }
		n.setOutputs(out)
	}
	t.done(x)
	return Value{out}
}

// CumsumOver is x.cumsum(dim) of floats or whole numbers. Its backward flips, sums and
// flips (cumsum_backward, torch/csrc/autograd/FunctionsManual.cpp).
func (t *Torch) CumsumOver(x X, dim int, dtype DType) Value {
	in := t.upper(read(x)) // on autocast's fp32 list
	if dtype != NoDType && in.DType != dtype {
		in = t.replace(in, t.to(in, dtype))
	}
	dim = (dim + len(in.Shape)) % max(len(in.Shape), 1)
	out := t.cumsum(in)
	if n := t.record("Cumsum", in); n != nil {
		n.gradient = func(g *Tensor) *Tensor {
			if g.Numel() <= 1 || g.Dim(dim) == 1 {
				return t.retain(g)
			}
			flipped := t.emptyLike(g, g.DType)
			sums := t.cumsum(flipped)
			out := t.emptyLike(sums, sums.DType)
			t.release(sums, flipped)
			return out
		}
		n.setOutputs(out)
	}
	t.release(in)
	t.done(x)
	return Value{out}
}

func (t *Torch) cumsum(in *Tensor) *Tensor {
	out := t.emptyLike(in, in.DType)
	t.release(t.contiguousPlain(in)) // scan_dim takes dense numbers
	if n := in.Numel(); len(in.Shape) > 0 && n == in.Dim(-1) && n > 0 {
		scratch := t.inclusiveSum(n)
		if in.DType.Size() == 4 {
			scratch = t.inclusiveSum32(n)
		}
		t.drop(t.allocate(scratch))
	}
	return out
}
