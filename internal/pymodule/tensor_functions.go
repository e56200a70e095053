package pymodule

import (
	"math"

	"memorymark/internal/torch"
)

// This file holds functions of torch on elements and rows, most of which may need gradients.

// tensorsAmong are the tensors of arguments.
func tensorsAmong(list []value) []*tensor {
	var out []*tensor
	for _, v := range list {
		if x, ok := v.(*tensor); ok {
			out = append(out, x)
		}
	}
	return out
}

// tensorOf is torch.tensor or as_tensor of numbers, in lists or not.
func (m *Machine) tensorOf(a *args) value {
	a.only("tensor", "dtype", "device", "data", "requires_grad")
	v, sizes, d := a.need(0, "data"), []int64{}, torch.Int64
	if x, ok := v.(*tensor); ok {
		return tensorMethods["to"].call(m, &args{[]value{x}, a.names, a.named})
	}
	known := fact{}
	for items, ok := itemsIn(v); ok; items, ok = itemsIn(v) {
		sizes = append(sizes, int64(len(items)))
		if v = float64(0); len(items) > 0 {
			v = items[0]
		}
	}
	if x, ok := v.(*tensor); ok {
		return m.made(a, dtypeOf(a.get(-1, "dtype"), x.x.DType), fact{}, sizes...)
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
	out := m.made(a, dtypeOf(a.get(-1, "dtype"), d), known, sizes...)
	if items, _ := itemsIn(a.need(0, "data")); len(sizes) == 1 && out.host {
		for _, v := range items {
			if !isNumber(v) {
				return out
			}
			out.values = append(out.values, number(v))
		}
	}
	return out
}

func itemsIn(v value) ([]value, bool) {
	switch x := v.(type) {
	case *list:
		return x.items, true
	case *tuple:
		return x.items, true
	}
	return nil, false
}

// newTensor is torch.Tensor(sizes), or of numbers.
func (m *Machine) newTensor(a *args, d torch.DType) value {
	if len(a.pos) == 1 {
		if x, ok := a.pos[0].(*tensor); ok {
			return hold(x)
		}
		if _, isList := itemsIn(a.pos[0]); isList {
			if t, ok := a.pos[0].(*tuple); !ok || t.names != nil || m.building && len(t.items) > 4 {
				return m.tensorOf(&args{a.pos, []string{"dtype", "device"}, []value{dtype(d), device{true}}})
			}
		}
	}
	m.hosts = true // they do not know of a default device
	return &tensor{refs: refs{1}, x: m.t.OnHost(d, m.shapeOf(a.pos)...), host: true}
}

// extreme is min, max, minimum or maximum.
func (m *Machine) extreme(name string, a *args) value {
	x := a.pos[0].(*tensor)
	if len(a.pos) == 1 && len(a.names) == 0 {
		return m.known(m.t.MaxOf(in(x)), x.fact.last(name, x.x))
	}
	if y, ok := a.get(1, "other").(*tensor); ok {
		if m.needsGrad(x, y) {
			return m.tensor(m.t.Extreme(in(x), in(y)))
		}
		return m.plain(promote(x.x, y.x), x, y)
	}
	dim, keep := int(integer(a.need(1, "dim"))), m.truth(a.or(2, "keepdim", false))
	if last := len(x.x.Shape) - 1; name == "max" && (dim == -1 || dim == last) {
		values, indices := m.t.MaxLast(in(x), keep)
		return pair(m.tensor(values), m.tensor(indices))
	}
	values, indices := m.t.MaxOver(in(x), dim, keep)
	return pair(m.tensor(values), m.tensor(indices))
}

// where is torch.where of tensors and numbers.
func (m *Machine) where(a *args) value {
	if len(a.pos)+len(a.names) == 1 {
		return m.nonzero(a.pos[0].(*tensor), true)
	}
	condition := a.need(0, "condition").(*tensor)
	x, y := a.need(1, "input"), a.need(2, "other")
	first, isFirst := x.(*tensor)
	kept, isTensor := y.(*tensor)
	switch {
	case isFirst && isTensor && !m.needsGrad(first, kept):
		return m.plain(promote(first.x, kept.x), condition, first, kept)
	case isTensor && isFirst && m.needsGrad(kept):
		return m.tensor(m.t.WhereGrad(in(condition), in(x), in(y)))
	case isTensor && isFirst:
		return m.tensor(m.t.Where(in(condition), in(x), in(y)))
	case isFirst:
		return m.tensor(m.t.WhereScalar(in(condition), in(x)))
	case isTensor && m.needsGrad(kept):
		number := m.t.Full(kept.x.DType)
		return m.tensor(m.t.WhereGrad(in(condition), number, in(y)))
	case isTensor:
		number := m.t.Full(kept.x.DType)
		out := m.plain(kept.x.DType, condition, kept)
		m.t.Drop(number)
		return out
	}
	d := torch.Int64 // two numbers, which become tensors of the device
	if _, ok := x.(float64); ok {
		d = m.dtype
	}
	if _, ok := y.(float64); ok {
		d = m.dtype
	}
	one, other := m.t.Full(d), m.t.Full(d)
	out := m.tensor(m.t.FloatsOf(d, in(condition)))
	m.t.Drop(other)
	m.t.Drop(one)
	return out
}

// unaries are functions and methods by the name of their node.
var unaries = map[string]string{
	"cos": "Cos", "sin": "Sin", "log": "Log", "sqrt": "Sqrt", "log1p": "Log1P", "log2": "Log2", "log10": "Log10", "expm1": "Expm1",
	"reciprocal": "Reciprocal", "erf": "Erf", "tan": "Tan", "sinh": "Sinh", "cosh": "Cosh", "atan": "Atan", "arctan": "Atan",
	"hardswish": "Hardswish", "hardsigmoid": "Hardsigmoid", "hardtanh": "Hardtanh", "relu6": "Hardtanh", "leaky_relu": "LeakyRelu", "elu": "Elu",
	"mish": "Mish", "logsigmoid": "LogSigmoid", "celu": "Celu", "selu": "Selu", "acos": "Acos", "asin": "Asin",
}

// steadies keep the type of whole numbers, and have no gradient of their own.
var steadies = map[string]string{"abs": "Abs", "floor": "Floor", "ceil": "Ceil", "round": "Round", "sign": "Sign", "trunc": "Trunc"}

// unary is a function of one tensor.
func (m *Machine) unary1(node string, x *tensor) value {
	if x.x.DType.IsFloat() {
		return m.tensor(m.t.Unary(node, in(x)))
	}
	return m.plain(m.dtype, x)
}

// addTensors adds what makes elements of elements, and tensors of nothing.
func addTensors(add adder) {
	for name, node := range unaries {
		add(name, func(m *Machine, a *args) value {
			if _, ok := a.pos[0].(*tensor); !ok {
				panic(raise("TypeError", "%s(): argument 'input' must be Tensor", name))
			}
			return m.unary1(node, a.pos[0].(*tensor))
		})
	}
	for name, node := range steadies {
		add(name, func(m *Machine, a *args) value {
			if x := a.pos[0].(*tensor); x.x.DType.IsFloat() {
				return m.tensor(m.t.Unary(node, in(x)))
			}
			x := a.pos[0].(*tensor)
			return m.plain(x.x.DType, x)
		})
	}
	for _, name := range []string{"logical_and", "logical_or", "logical_xor", "isin", "isclose"} {
		add(name, func(m *Machine, a *args) value { return m.plain(torch.Bool, tensorsAmong(a.pos)...) })
	}
	for _, name := range []string{"logical_not", "isnan", "isinf", "isfinite"} {
		add(name, func(m *Machine, a *args) value {
			x := a.pos[0].(*tensor)
			if name != "logical_not" && name != "isnan" && x.x.DType.IsFloat() { // abs() first
				abs := m.t.FloatsOf(x.x.DType, in(x))
				out := m.tensor(m.t.Compare(abs))
				if name == "isfinite" {
					out.fact = always(1)
				} else {
					out.fact = always(0)
				}
				return out
			}
			out := m.tensor(m.t.Compare(in(x)))
			if name == "isnan" {
				out.fact = always(0)
			}
			return out
		})
	}
	for name, op := range map[string]string{
		"floor_divide": "FloorDiv", "true_divide": "Div", "divide": "Div", "multiply": "Mult", "subtract": "Sub", "remainder": "Mod", "fmod": "Mod",
		"bitwise_and": "BitAnd", "bitwise_or": "BitOr", "greater": "", "less": "",
	} {
		add(name, func(m *Machine, a *args) value {
			if op == "" {
				return m.compare(map[string]string{"greater": "Gt", "less": "Lt"}[name], a.pos[0], a.need(1, "other"))
			}
			return m.binary(op, a.pos[0], a.need(1, "other"))
		})
	}
	add("div", func(m *Machine, a *args) value {
		if mode := a.or(-1, "rounding_mode", nil); mode != nil {
			return m.binary("FloorDiv", a.pos[0], a.need(1, "other"))
		}
		return m.binary("Div", a.pos[0], a.need(1, "other"))
	})
	add("clamp_min", func(m *Machine, a *args) value { return m.tensor(m.t.Clamp(in(a.pos[0]), false)) })
	add("clamp_max", func(m *Machine, a *args) value { return m.tensor(m.t.Clamp(in(a.pos[0]), false)) })
	add("linspace", func(m *Machine, a *args) value {
		a.only("linspace", "device", "dtype", "steps", "start", "end")
		n := integer(a.need(2, "steps"))
		from, to := number(a.need(0, "start")), number(a.need(1, "end"))
		out := m.made(a, dtypeOf(a.get(-1, "dtype"), m.dtype), fact{steps, from, (to - from) / math.Max(float64(n-1), 1)}, n)
		if out.host {
			m.spendElements(n)
			for i := range n {
				out.values = append(out.values, from+out.fact.step*float64(i))
			}
		}
		return out
	})
	add("eye", func(m *Machine, a *args) value {
		n := integer(a.pos[0])
		columns := n
		if len(a.pos) > 1 {
			columns = integer(a.pos[1])
		}
		return m.made(a, dtypeOf(a.get(-1, "dtype"), m.dtype), fact{}, n, columns)
	})
	add("randint", func(m *Machine, a *args) value {
		return m.made(a, dtypeOf(a.get(-1, "dtype"), torch.Int64), fact{}, m.shapeOf([]value{a.or(len(a.pos)-1, "size", nil)})...)
	})
	add("randperm", func(m *Machine, a *args) value {
		return m.made(a, dtypeOf(a.get(-1, "dtype"), torch.Int64), fact{}, integer(a.pos[0]))
	})
	add("normal", func(m *Machine, a *args) value {
		return m.made(a, dtypeOf(a.get(-1, "dtype"), m.dtype), fact{}, m.shapeOf([]value{a.need(2, "size")})...)
	})
	add("logsumexp", func(m *Machine, a *args) value {
		x := a.pos[0].(*tensor)
		dims, keep := m.dimsOf(x, a, 1)
		return m.tensor(m.t.LogSumExp(in(x), dims, keep))
	})
	for _, name := range []string{"sum", "mean", "all", "any", "cumsum", "argmax", "argmin", "amax", "amin", "std", "var", "norm", "prod", "count_nonzero"} {
		add(name, func(m *Machine, a *args) value { return tensorMethods[name].call(m, a) })
	}
	for name, input := range map[string]int{"baddbmm": 0, "addmm": 0, "addbmm": -1} {
		add(name, func(m *Machine, a *args) value {
			if input < 0 {
				panic(failure("addbmm is not known"))
			}
			scaledInput, scaled := number(a.or(-1, "beta", 1.0)) != 1, number(a.or(-1, "alpha", 1.0)) != 1
			return m.tensor(m.t.AddProduct(in(a.need(0, "input")), in(a.need(1, "batch1")), in(a.need(2, "batch2")), scaledInput, scaled))
		})
	}
	add("outer", func(m *Machine, a *args) value {
		column := m.tensor(m.t.Unsqueeze(in(a.pos[0]), 1))
		out := m.twoTensors("Mult", column, a.pos[1].(*tensor))
		m.drop(column)
		return out
	})
	add("einsum", func(m *Machine, a *args) value { return m.einsum(m.text(a.pos[0]), a.pos[1:]) })
	add("is_floating_point", func(_ *Machine, a *args) value { return a.pos[0].(*tensor).x.DType.IsFloat() })
	add("Size", func(m *Machine, a *args) value { return newTuple(m.listOf(a.pos[0])...) })
	add("argsort", func(m *Machine, a *args) value {
		sorted := m.sortRows(a.pos[0].(*tensor)).(*tuple)
		defer m.drop(sorted)
		return hold(sorted.items[1])
	})
	add("nonzero", func(m *Machine, a *args) value {
		return m.nonzero(a.pos[0].(*tensor), a.or(-1, "as_tuple", false) == true)
	})
	add("scalar_tensor", func(m *Machine, a *args) value { return m.tensorOf(a) })
	add("rms_norm", func(m *Machine, a *args) value { return nnFunctions["rms_norm"].call(m, a) })
	for _, name := range []string{"FloatTensor", "LongTensor", "BoolTensor"} {
		d := map[string]torch.DType{"FloatTensor": torch.Float32, "LongTensor": torch.Int64, "BoolTensor": torch.Bool}[name]
		add(name, func(m *Machine, a *args) value { return m.newTensor(a, d) })
	}
	add("iinfo", func(_ *Machine, a *args) value { return limits(dtypeOf(a.pos[0], 0)) })
	add("get_autocast_gpu_dtype", func(m *Machine, _ *args) value { return dtype(torch.Float16) })
}

// sortRows is sort of rows: the sorted elements, and their indices.
func (m *Machine) sortRows(x *tensor) value {
	if m.needsGrad(x) {
		panic(failure("the gradient of sort is not known"))
	}
	values := m.tensor(m.t.FullLike(in(x)))
	return pair(values, m.tensor(m.t.Full(torch.Int64, x.x.Shape...)))
}

// nonzero is x.nonzero() where what is in the tensor is known.
func (m *Machine) nonzero(x *tensor, parts bool) value {
	if x.fact.kind != constant {
		panic(failure("how many elements are not zero is not known"))
	}
	var out *tensor
	if x.fact.value == 0 {
		out = m.tensor(m.t.Full(torch.Int64, 0, int64(len(x.x.Shape))))
	} else {
		out = m.tensor(m.t.NonzeroAll(in(x)))
	}
	if !parts {
		return out
	}
	return m.unbound(out, 1)
}

func (m *Machine) unbound(x *tensor, dim int) value {
	out := m.tensors(m.t.Unbind(in(x), dim))
	m.drop(x)
	return out
}

// dimsOf are the dimensions of a reduction, all without any, and whether they stay.
func (m *Machine) dimsOf(x *tensor, a *args, at int) (dims []int, keep bool) {
	n := len(x.x.Shape)
	d := a.get(at, "dim")
	if d == nil {
		d = a.get(-1, "axis")
	}
	keep, _ = a.or(at+1, "keepdim", false).(bool)
	if d == nil || d == (none{}) {
		for i := range n {
			dims = append(dims, i)
		}
		return dims, keep
	}
	for _, i := range m.shapeOf([]value{d}) {
		dims = append(dims, (int(i)+n)%max(n, 1))
	}
	return dims, keep
}
