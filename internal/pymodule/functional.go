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
	functionsToo()
	addInPlace()
}

// functionsToo are functions of torch that torch.nn.functional has, too.
func functionsToo() {
	for name := range unaries {
		nnFunctions[name] = torchFunctions[name]
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
	add("device", func(_ *Machine, a *args) value {
		if d, ok := a.pos[0].(device); ok {
			return d
		}
		return device{a.pos[0] == "cpu"}
	})
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

// largest are the largest finite numbers of the types.
var largest = map[torch.DType]float64{torch.Float32: math.MaxFloat32, torch.Float16: 65504, torch.BFloat16: 3.3895313892515355e38}

// checkFits refuses to fill a tensor with a number that its type does not have
// (checked_convert, c10/util/TypeCast.h), as the least number of float32 is for scores
// that autocast made.
func checkFits(x *tensor, v value) {
	n, ok := v.(float64)
	if most := largest[x.x.DType]; ok && most > 0 && !math.IsInf(n, 0) && math.Abs(n) > most {
		panic(raise("RuntimeError", "value %g cannot be converted to the type of a tensor of %d bytes an element without overflow", n, x.x.DType.Size()))
	}
}

func (l limits) attribute(_ *Machine, name string) value {
	most := largest[torch.DType(l)]
	switch name {
	case "min":
		return -most
	case "max":
		return most
	case "eps":
		return map[torch.DType]float64{torch.Float32: 0x1p-23, torch.Float16: 0x1p-10, torch.BFloat16: 0x1p-7}[torch.DType(l)]
	case "tiny", "smallest_normal":
		return 0x1p-126
	}
	return nil
}

// addFactories adds what makes tensors of nothing.
func addFactories(add adder) {
	fill := func(name string, f fact) {
		add(name, func(m *Machine, a *args) value {
			a.only(name, "dtype", "device", "size", "layout", "requires_grad", "generator", "pin_memory")
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
	fill("randn", fact{})
	like := func(name string, f func(a *args) fact) {
		add(name, func(m *Machine, a *args) value {
			a.only(name, "device", "dtype", "fill_value", "layout", "memory_format")
			x := a.pos[0].(*tensor)
			if d := dtypeOf(a.get(-1, "dtype"), x.x.DType); d != x.x.DType {
				return m.known(m.t.FloatsOf(d, in(x)), f(a))
			}
			return m.known(m.t.FullLike(in(x)), f(a))
		})
	}
	like("zeros_like", func(*args) fact { return always(0) })
	like("ones_like", func(*args) fact { return always(1) })
	for _, name := range []string{"empty_like", "rand_like", "randn_like"} {
		like(name, func(*args) fact { return fact{} })
	}
	like("full_like", func(a *args) fact {
		if v := a.need(1, "fill_value"); isNumber(v) {
			return always(number(v))
		}
		return fact{}
	})
	add("full", func(m *Machine, a *args) value {
		a.only("full", "dtype", "device", "fill_value", "size")
		v, d := a.need(1, "fill_value"), m.dtype
		switch v.(type) {
		case int64:
			d = torch.Int64
		case bool:
			d = torch.Bool
		}
		if _, ok := v.(*tensor); ok {
			return m.made(a, dtypeOf(a.get(-1, "dtype"), d), fact{}, m.shapeOf([]value{a.need(0, "size")})...)
		}
		return m.made(a, dtypeOf(a.get(-1, "dtype"), d), always(number(v)), m.shapeOf([]value{a.need(0, "size")})...)
	})
	add("arange", arange)
	for _, name := range []string{"tensor", "as_tensor"} {
		add(name, func(m *Machine, a *args) value { return m.tensorOf(a) })
	}
}

func arange(m *Machine, a *args) value {
	a.only("arange", "dtype", "device", "start", "end", "step")
	from, to, step := a.or(-1, "start", int64(0)), a.or(-1, "end", nil), a.or(-1, "step", int64(1))
	if len(a.pos) > 0 {
		to = a.pos[0]
		if end := a.get(-1, "end"); end != nil {
			from, to = to, end
		}
	}
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
	clamp := func(m *Machine, a *args) value {
		low, high := a.or(1, "min", nil), a.or(2, "max", nil)
		if low != nil && !isNumber(low) || high != nil && !isNumber(high) {
			return m.plain(a.pos[0].(*tensor).x.DType, tensorsAmong(a.pos)...)
		}
		return m.tensor(m.t.Clamp(in(a.pos[0]), low != nil && high != nil))
	}
	add("clamp", clamp)
	add("clip", clamp)
	add("bitwise_xor", func(m *Machine, a *args) value {
		x, y := a.pos[0].(*tensor), a.pos[1].(*tensor)
		return m.plain(promote(x.x, y.x), x, y)
	})
	add("repeat_interleave", func(m *Machine, a *args) value {
		a.only("repeat_interleave", "repeats", "dim", "output_size")
		x := a.pos[0].(*tensor)
		if a.get(2, "dim") == nil && len(x.x.Shape) > 1 {
			panic(failure("repeat_interleave of a flattened tensor is not known"))
		}
		return m.tensor(m.t.RepeatInterleave(in(x), a.need(1, "repeats").(int64), int(integer(a.or(2, "dim", int64(0))))))
	})
	add("unique_consecutive", func(m *Machine, a *args) value { return m.tensor(m.t.UniqueConsecutive(in(a.pos[0]))) })
	add("square", func(m *Machine, a *args) value { return m.binary("Pow", a.pos[0], int64(2)) })
	add("pow", func(m *Machine, a *args) value { return m.binary("Pow", a.pos[0], a.need(1, "exponent")) })
	for _, name := range []string{"min", "max", "minimum", "maximum"} {
		add(name, func(m *Machine, a *args) value { return m.extreme(name, a) })
	}
	add("where", func(m *Machine, a *args) value { return m.where(a) })
	add("masked_fill", func(m *Machine, a *args) value {
		checkFits(a.pos[0].(*tensor), a.get(2, "value"))
		return m.tensor(m.t.MaskedFill(in(a.pos[0]), in(a.need(1, "mask"))))
	})
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
	if f.kind == constant || f.kind == below && name == "max" {
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
	addMoves(add)
	addTensors(add)
	add("topk", func(m *Machine, a *args) value {
		a.only("topk", "k", "dim", "sorted", "largest")
		values, indices := m.t.TopK(in(a.pos[0]), integer(a.need(1, "k")))
		return pair(m.tensor(values), m.tensor(indices))
	})
	add("sort", func(m *Machine, a *args) value {
		if x := a.pos[0].(*tensor); len(x.x.Shape) != 1 || x.x.DType != torch.Int64 {
			return m.sortRows(x)
		}
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
		out := m.tensor(m.t.Gather(in(a.pos[0]), in(a.need(2, "index"))))
		if f := a.pos[0].(*tensor).fact; f.kind == tokens {
			out.fact = f
		}
		return out
	})
}
