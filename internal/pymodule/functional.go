package pymodule

import (
	"math"

	"memorymark/internal/torch"
)

// This file holds the functions of torch.

var torchFunctions, nnFunctions map[string]*builtin

func init() {
	torchFunctions, nnFunctions = functionsOfTorch(), functionsOfNN()
	for _, name := range []string{"softmax", "relu", "sigmoid", "tanh", "dropout", "embedding", "layer_norm"} {
		if f := nnFunctions[name]; f != nil {
			torchFunctions[name] = f
		} else {
			nnFunctions[name] = torchFunctions[name]
		}
	}
}

type adder func(name string, call func(m *Machine, a *args) value)

func functionsOfTorch() map[string]*builtin {
	out := make(map[string]*builtin)
	add := func(name string, call func(m *Machine, a *args) value) { out[name] = &builtin{name, call} }
	addFactories(add)
	addElementwise(add)
	addProducts(add)
	add("is_tensor", func(_ *Machine, a *args) value { _, ok := a.pos[0].(*tensor); return ok })
	add("is_autocast_enabled", func(m *Machine, _ *args) value { return m.t.Casting() })
	add("get_default_dtype", func(m *Machine, _ *args) value { return dtype(m.dtype) })
	add("is_grad_enabled", func(m *Machine, _ *args) value { return m.t.GradEnabled() })
	add("finfo", func(_ *Machine, a *args) value { return limits(dtypeOf(a.pos[0], 0)) })
	for _, name := range []string{"no_grad", "inference_mode"} {
		add(name, func(_ *Machine, a *args) value {
			r := &region{func(m *Machine, body func()) { m.t.NoGrad(body) }}
			if len(a.pos) == 1 {
				return r.around(a.pos[0])
			}
			return r
		})
	}
	add("device", func(*Machine, *args) value { return device{} })
	add("autocast", func(_ *Machine, a *args) value { return castRegion(a) })
	return out
}

// castRegion is torch.autocast that is off, within one that is on.
func castRegion(a *args) value {
	if a.get(-1, "enabled") != false {
		panic(failure("autocast within a model is not known"))
	}
	return &region{func(m *Machine, body func()) { m.t.Autocast(torch.NoDType, body) }}
}

// around is the region as a decorator.
func (r *region) around(f value) value {
	return &builtin{"decorate_context", func(m *Machine, a *args) (out value) {
		r.run(m, func() { out = m.invoke(f, a) })
		return out
	}}
}

type limits torch.DType

func (l limits) attribute(_ *Machine, name string) value {
	most := map[torch.DType]float64{torch.Float32: math.MaxFloat32, torch.Float16: 65504, torch.BFloat16: 3.3895313892515355e38}[torch.DType(l)]
	switch name {
	case "min":
		return -most
	case "max":
		return most
	}
	return nil
}

// addFactories adds what makes tensors of nothing.
func addFactories(add adder) {
	fill := func(name string, f fact) {
		add(name, func(m *Machine, a *args) value {
			a.only(name, "dtype", "device", "size")
			sizes := a.pos
			if s := a.get(-1, "size"); s != nil {
				sizes = []value{s}
			}
			return m.made(a, dtypeOf(a.get(-1, "dtype"), m.dtype), f, m.shapeOf(sizes)...)
		})
	}
	fill("ones", always(1))
	fill("zeros", always(0))
	fill("empty", fact{})
	fill("rand", fact{kind: chance})
	like := func(name string, f func(a *args) fact) {
		add(name, func(m *Machine, a *args) value {
			a.only(name, "device")
			return m.known(m.t.FullLike(in(a.pos[0])), f(a))
		})
	}
	like("zeros_like", func(*args) fact { return always(0) })
	like("ones_like", func(*args) fact { return always(1) })
	like("empty_like", func(*args) fact { return fact{} })
	like("full_like", func(a *args) fact {
		if v := a.need(1, "fill_value"); isNumber(v) {
			return always(number(v))
		}
		return fact{}
	})
	add("full", func(m *Machine, a *args) value {
		a.only("full", "dtype", "device", "fill_value")
		v, d := a.need(1, "fill_value"), m.dtype
		switch v.(type) {
		case int64:
			d = torch.Int64
		case bool:
			d = torch.Bool
		}
		return m.made(a, dtypeOf(a.get(-1, "dtype"), d), always(number(v)), m.shapeOf(a.pos[:1])...)
	})
	add("arange", arange)
	add("tensor", func(m *Machine, a *args) value {
		a.only("tensor", "dtype", "device")
		v, sizes, d := a.pos[0], []int64{}, torch.Int64
		known := fact{}
		for l, ok := v.(*list); ok; l, ok = v.(*list) {
			sizes = append(sizes, int64(len(l.items)))
			if v = float64(0); len(l.items) > 0 {
				v = l.items[0]
			}
		}
		switch v.(type) {
		case float64:
			d = m.dtype
		case bool:
			d = torch.Bool
		}
		if len(sizes) == 0 {
			known = always(number(v))
		}
		return m.made(a, dtypeOf(a.get(-1, "dtype"), d), known, sizes...)
	})
}

func arange(m *Machine, a *args) value {
	a.only("arange", "dtype", "device")
	from, to, step := value(int64(0)), a.pos[0], value(int64(1))
	if len(a.pos) > 1 {
		from, to = to, a.pos[1]
	}
	if len(a.pos) > 2 {
		step = a.pos[2]
	}
	d := torch.Int64
	for _, v := range []value{from, to, step} {
		if _, ok := v.(float64); ok {
			d = m.dtype
		}
	}
	n := math.Ceil((number(to) - number(from)) / number(step))
	return m.made(a, dtypeOf(a.get(-1, "dtype"), d), fact{steps, number(from), number(step)}, int64(n))
}

// addElementwise adds what makes elements of elements.
func addElementwise(add adder) {
	unary := func(name string, f func(t *torch.Torch, x torch.X) torch.Value) {
		add(name, func(m *Machine, a *args) value { return m.tensor(f(m.t, in(a.pos[0]))) })
	}
	unary("rsqrt", (*torch.Torch).Rsqrt)
	unary("tanh", (*torch.Torch).Tanh)
	unary("sigmoid", (*torch.Torch).Sigmoid)
	unary("exp", (*torch.Torch).Exp)
	unary("relu", (*torch.Torch).ReLU)
	add("neg", func(m *Machine, a *args) value { return m.tensorUnary("USub", a.pos[0].(*tensor)) })
	add("polar", func(m *Machine, a *args) value {
		return m.plain(torch.Complex64, a.pos[0].(*tensor), a.need(1, "angle").(*tensor))
	})
	for _, name := range []string{"cos", "sin", "log", "sqrt"} {
		add(name, func(m *Machine, a *args) value { return m.plainFloat(a.pos[0].(*tensor)) })
	}
	binary := func(name, op string) {
		add(name, func(m *Machine, a *args) value { return m.binary(op, a.pos[0], a.need(1, "other")) })
	}
	binary("add", "Add")
	binary("mul", "Mult")
	binary("div", "Div")
	binary("sub", "Sub")
	for name, op := range map[string]string{"eq": "Eq", "ne": "NotEq", "lt": "Lt", "le": "LtE", "gt": "Gt", "ge": "GtE"} {
		add(name, func(m *Machine, a *args) value { return m.compare(op, a.pos[0], a.need(1, "other")) })
	}
	add("clamp", func(m *Machine, a *args) value {
		low, high := a.or(1, "min", nil), a.or(2, "max", nil)
		if low != nil && !isNumber(low) || high != nil && !isNumber(high) {
			panic(failure("a clamp by tensors is not known"))
		}
		return m.tensor(m.t.Clamp(in(a.pos[0]), low != nil && high != nil))
	})
	for _, name := range []string{"abs", "floor", "tril"} {
		add(name, func(m *Machine, a *args) value { x := a.pos[0].(*tensor); return m.plain(x.x.DType, x) })
	}
	add("bitwise_xor", func(m *Machine, a *args) value {
		x, y := a.pos[0].(*tensor), a.pos[1].(*tensor)
		return m.plain(promote(x.x, y.x), x, y)
	})
	add("repeat_interleave", func(m *Machine, a *args) value {
		a.only("repeat_interleave", "repeats", "dim")
		return m.tensor(m.t.RepeatInterleave(in(a.pos[0]), a.need(1, "repeats").(int64), int(integer(a.need(2, "dim")))))
	})
	add("unique_consecutive", func(m *Machine, a *args) value { return m.tensor(m.t.UniqueConsecutive(in(a.pos[0]))) })
	add("square", func(m *Machine, a *args) value { return m.binary("Pow", a.pos[0], int64(2)) })
	add("pow", func(m *Machine, a *args) value { return m.binary("Pow", a.pos[0], a.need(1, "exponent")) })
	for _, name := range []string{"min", "max", "minimum", "maximum"} {
		add(name, func(m *Machine, a *args) value {
			x := a.pos[0].(*tensor)
			if len(a.pos) == 1 && len(a.names) == 0 {
				return m.known(m.t.MaxOf(in(x)), x.fact.last(name, x.x))
			}
			if a.get(-1, "dim") == int64(-1) && name == "max" {
				values, indices := m.t.MaxLast(in(x), m.truth(a.or(-1, "keepdim", false)))
				return pair(m.tensor(values), m.tensor(indices))
			}
			y, ok := a.need(1, "other").(*tensor)
			if !ok {
				panic(failure("%s over a dimension is not known", name))
			}
			return m.plain(promote(x.x, y.x), x, y)
		})
	}
	add("where", func(m *Machine, a *args) value {
		x, y := a.need(1, "input"), a.need(2, "other")
		kept, isTensor := y.(*tensor)
		if first, ok := x.(*tensor); ok && isTensor && !m.needsGrad(first, kept) {
			return m.plain(promote(first.x, kept.x), a.pos[0].(*tensor), first, kept)
		}
		if isTensor {
			if m.needsGrad(kept) {
				panic(failure("the gradient of this where is not known"))
			}
			return m.tensor(m.t.Where(in(a.pos[0]), in(x), in(y)))
		}
		return m.tensor(m.t.WhereScalar(in(a.pos[0]), in(x)))
	})
	add("masked_fill", func(m *Machine, a *args) value { return m.tensor(m.t.MaskedFill(in(a.pos[0]), in(a.need(1, "mask")))) })
	add("diff", func(m *Machine, a *args) value {
		a.only("diff", "prepend", "dim")
		x, first := a.pos[0].(*tensor), a.need(-1, "prepend").(*tensor)
		n := x.x.Dim(-1)
		joined := m.t.Cat(-1, in(first), in(x))
		out := m.tensor(m.t.Integers(m.t.Slice(joined.Borrow(), 1, 1, n+1), m.t.Slice(joined.Borrow(), 1, 0, n)))
		m.t.Drop(joined)
		if x.fact.kind == steps && first.fact.kind == steps && first.fact.value == x.fact.value-x.fact.step {
			out.fact = always(x.fact.step)
		}
		return out
	})
}

// last is the least or the largest of numbers that go up.
func (f fact) last(name string, x *torch.Tensor) fact {
	if f.kind == constant {
		return f
	}
	if f.kind == steps && name == "max" && f.step > 0 {
		return always(f.value + f.step*float64(x.Dim(-1)-1))
	}
	return fact{}
}

// pair is what functions return that find the largest, and where they are.
func pair(values, indices value) value {
	out := newTuple(values, indices)
	out.names = []string{"values", "indices"}
	return out
}

// addProducts adds products of matrices, and what joins and picks.
func addProducts(add adder) {
	add("matmul", func(m *Machine, a *args) value { return m.tensor(m.t.MatMul(in(a.pos[0]), in(a.need(1, "other")))) })
	add("bmm", func(m *Machine, a *args) value { return m.tensor(m.t.BMM(in(a.pos[0]), in(a.pos[1]))) })
	for name, join := range map[string]func(*torch.Torch, int, ...torch.X) torch.Value{"cat": (*torch.Torch).Cat, "stack": (*torch.Torch).Stack} {
		add(name, func(m *Machine, a *args) value {
			a.only(name, "dim")
			items := m.listOf(a.pos[0])
			parts := make([]torch.X, len(items))
			for i, v := range items {
				parts[i] = in(v)
			}
			out := m.tensor(join(m.t, int(integer(a.or(1, "dim", int64(0)))), parts...))
			m.dropAll(items)
			return out
		})
	}
	add("index_select", func(m *Machine, a *args) value {
		if x := a.pos[0].(*tensor); m.needsGrad(x) || integer(a.pos[1]) != 0 {
			panic(failure("this index_select is not known"))
		}
		return m.tensor(m.t.Rows(in(a.pos[0]), in(a.need(2, "index"))))
	})
	add("scatter", func(m *Machine, a *args) value {
		x := a.pos[0].(*tensor)
		if y, ok := a.pos[3].(*tensor); m.needsGrad(x) || ok && m.needsGrad(y) {
			panic(failure("the gradient of scatter is not known"))
		}
		return m.plain(x.x.DType, x)
	})
	add("einsum", func(m *Machine, a *args) value {
		if a.pos[0] != "i , j -> i j" {
			panic(failure("this einsum is not known"))
		}
		x, y := a.pos[1].(*tensor), a.pos[2].(*tensor)
		column := m.tensor(m.t.Unsqueeze(in(x), 1))
		out := m.plain(promote(x.x, y.x), column, y)
		m.drop(column)
		return out
	})
	add("topk", func(m *Machine, a *args) value {
		a.only("topk", "k", "dim", "sorted")
		values, indices := m.t.TopK(in(a.pos[0]), integer(a.need(1, "k")))
		return pair(m.tensor(values), m.tensor(indices))
	})
	add("sort", func(m *Machine, a *args) value {
		values, indices := m.t.Sort(in(a.pos[0]))
		return pair(m.tensor(values), m.tensor(indices))
	})
	for name, counted := range map[string]torch.DType{"histc": torch.NoDType, "bincount": torch.Int64} {
		add(name, func(m *Machine, a *args) value {
			if counted == torch.Int64 {
				return m.tensor(m.t.Bincount(in(a.pos[0]), integer(a.need(-1, "minlength"))))
			}
			return m.tensor(m.t.Full(a.pos[0].(*tensor).x.DType, integer(a.need(1, "bins"))))
		})
	}
	add("view_as_complex", func(m *Machine, a *args) value { return m.tensor(m.t.ViewAsComplex(in(a.pos[0]))) })
	add("view_as_real", func(m *Machine, a *args) value { return m.tensor(m.t.ViewAsReal(in(a.pos[0]))) })
	add("gather", func(m *Machine, a *args) value {
		return m.tensor(m.t.Gather(in(a.pos[0]), in(a.need(2, "index"))))
	})
}
