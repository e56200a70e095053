package torch

// This file is LoRA on a parameter that belongs to no Linear, such as the
// matrices of all experts in one (peft/tuners/lora/layer.py, ParamWrapper).

// Stack is a parameter that PEFT can adapt by its name: matrices of experts,
// [experts, out, in], or one, [out, in].
type Stack struct {
	Weight *Tensor

	name  string  // the end of its path in named_parameters()
	fused int64   // how many layers it was before transformers 5
	last  *Tensor // that its module lists; adapters come behind it
	lora  *lora   // nil for none
}

// NewStack makes a parameter.
func (t *Torch) NewStack(name string, dtype DType, shape ...int64) *Stack {
	return t.AsStack(t.parameter(dtype, shape...), name)
}

// AsStack is a parameter that PEFT can adapt, by the end of its path.
func (t *Torch) AsStack(p *Tensor, name string) *Stack {
	m := &Stack{Weight: p.Named(name), name: name, fused: 1, last: p}
	t.stacks = append(t.stacks, m)
	return m
}

// Fused marks a parameter that was several layers, each of which has the rank.
func (m *Stack) Fused(layers int64) *Stack {
	m.fused = layers
	return m
}

// Before says that another parameter of the module is listed behind this one.
func (m *Stack) Before(other *Stack) { m.last = other.Weight }

// Adapted reports whether the parameter has an adapter.
func (m *Stack) Adapted() bool { return m.lora != nil }

func (m *Stack) experts() int64 {
	if len(m.Weight.Shape) == 2 {
		return 1
	}
	return m.Weight.Shape[0]
}

// wrapStack makes the adapter of a parameter: two matrices for all experts. It
// returns the last parameter that the module lists now.
func (t *Torch) wrapStack(m *Stack, rank int64, last *Tensor) *Tensor {
	all := rank * m.fused * m.experts()
	m.lora = &lora{}
	m.lora.a = &Linear{Weight: t.parameterAfter(last, m.Weight.DType, all, m.Weight.Dim(-1))}
	m.lora.b = &Linear{Weight: t.parameterAfter(m.lora.a.Weight, m.Weight.DType, m.Weight.Dim(-2), all)}
	return m.lora.b.Weight
}

// wrapStacks adds adapters to the parameters with the given names.
func (t *Torch) wrapStacks(c *LoRA) {
	behind := make(map[*Tensor]*Tensor) // the last adapter behind a parameter
	for _, m := range t.stacks {
		for _, name := range c.Parameters {
			if !endsWith(m.name, name) {
				continue
			}
			last := m.last
			if behind[last] != nil {
				last = behind[last]
			}
			behind[m.last] = t.wrapStack(m, c.Rank, last)
		}
	}
}

// defaultAlpha is lora_alpha if it is not given. For an equal rank, products are not
// scaled.
const defaultAlpha = 8

// ActiveStack is a parameter while its module runs (ParamWrapper._activate_lora).
type ActiveStack struct {
	t           *Torch
	stack       *Stack
	frame       *Frame
	left, right *Var // of the added matrices; left alone if only one was
	cached      *Var // the sum, once it was asked for
}

// Activate is the beginning of ParamWrapper.forward. Registering a parametrization
// computes it once, as a check (torch/nn/utils/parametrize.py,
// ParametrizationList.__init__).
func (t *Torch) Activate(m *Stack) *ActiveStack {
	a := &ActiveStack{t: t, stack: m, frame: t.Enter()}
	if m.lora == nil {
		return a
	}
	a.cached = a.frame.Let(Value{})
	if experts, w := m.experts(), m.Weight; experts > 1 {
		out, in := w.Dim(1), w.Dim(2)
		rightValue := t.Reshape(Borrow(m.lora.a.Weight), experts, -1, in)
		leftValue := t.Permute(t.Reshape(Borrow(m.lora.b.Weight), out, -1, experts), 2, 0, 1)
		a.left = a.frame.Let(t.To(leftValue, w.DType))
		a.right = a.frame.Let(t.To(rightValue, w.DType))
	} else {
		delta := t.Scale(t.MatMul(Borrow(m.lora.b.Weight), Borrow(m.lora.a.Weight)))
		a.left = a.frame.Let(t.To(delta, w.DType))
	}
	t.Drop(a.sum())
	return a
}

// Weight is the parameter with its adapter, computed once while the module runs
// (torch.nn.utils.parametrize.cached).
func (a *ActiveStack) Weight() X {
	if a.stack.lora == nil {
		return Borrow(a.stack.Weight)
	}
	if a.cached.tensor == nil {
		a.cached.Set(a.sum())
	}
	return a.cached
}

// sum is the forward function of the parametrization: _LoraFactorsProxy, or
// _LoraParameterProxy for one matrix.
func (a *ActiveStack) sum() Value {
	if a.right == nil {
		return a.t.Add(Borrow(a.stack.Weight), a.left)
	}
	return a.t.addProducts(a.left.tensor, a.right.tensor, a.scaled())
}

func (a *ActiveStack) scaled() bool {
	return a.stack.lora.a.Weight.Dim(0) != defaultAlpha*a.stack.fused*a.stack.experts()
}

// Leave ends the module.
func (a *ActiveStack) Leave() { a.frame.End() }

// addProducts is torch.baddbmm of a frozen parameter: batched products that are added
// to it.
func (t *Torch) addProducts(left, right *Tensor, scaled bool) Value {
	n := t.record("Baddbmm", left, right)
	if n != nil {
		a, b := t.save(n, left), t.save(n, right)
		scale := func(x *Tensor) *Tensor { // maybe_multiply
			if !scaled {
				return x
			}
			return t.replace(x, t.pointwise(x.DType, x))
		}
		n.backward = func(g []*Tensor) []*Tensor {
			bt := t.transposeBatch(b)
			ofLeft := scale(t.bmmPlain(g[0], bt))
			at := t.transposeBatch(a)
			ofRight := scale(t.bmmPlain(at, g[0]))
			t.release(at, bt)
			return []*Tensor{ofLeft, ofRight}
		}
	}
	out := t.bmmPlain(left, right)
	n.setOutputs(out)
	return Value{out}
}
