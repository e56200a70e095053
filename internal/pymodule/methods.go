package pymodule

import (
	"slices"

	"memorymark/internal/torch"
)

// tensorMethods are the methods of tensors, by name.
var tensorMethods map[string]*builtin

func init() { tensorMethods = methodsOfTensor() }

// tensorAttribute is x.name, and what it is bound to if it is a method.
func (m *Machine) tensorAttribute(x *tensor, name string) (f, self value) {
	switch name {
	case "shape":
		return shapeTuple(x.x), nil
	case "dtype":
		return dtype(x.x.DType), nil
	case "device":
		return device{}, nil
	case "ndim":
		return int64(len(x.x.Shape)), nil
	case "requires_grad":
		return x.x.RequiresGrad(), nil
	case "data":
		return m.tensor(m.t.Detach(in(x))), nil
	case "is_cuda":
		return true, nil
	case "grad":
		return none{}, nil
	case "_is_hf_initialized":
		return false, nil
	case "T":
		return m.tensor(m.t.Transpose(in(x), 0, 1)), nil
	}
	if f := tensorMethods[name]; f != nil {
		return f, hold(x)
	}
	return nil, nil
}

func (m *Machine) setTensorAttribute(x *tensor, name string, to value) {
	switch name {
	case "requires_grad":
		if to == true {
			x.x.RequireGrad()
			return
		}
	case "_is_hf_initialized":
		return
	}
	panic(failure("setting %s of a tensor is not known", name))
}

func methodsOfTensor() map[string]*builtin {
	out := make(map[string]*builtin)
	add := func(name string, call func(m *Machine, x *tensor, a *args) value) {
		out[name] = &builtin{name, func(m *Machine, a *args) value {
			a.only(name, "dim", "dims", "dim0", "dim1", "keepdim", "dtype", "device", "non_blocking", "copy", "start_dim", "mask", "value", "chunks", "src", "min", "max")
			return call(m, a.pos[0].(*tensor), &args{a.pos[1:], a.names, a.named})
		}}
	}
	addShapes(add)
	addCasts(add)
	addReductions(add)
	for _, name := range []string{
		"pow", "rsqrt", "tanh", "sigmoid", "cos", "sin", "exp", "log", "sqrt", "abs", "softmax", "matmul", "masked_fill", "gather", "where",
		"eq", "ne", "lt", "le", "gt", "ge", "max", "min", "clamp", "relu", "topk", "square", "floor", "repeat_interleave", "index_select", "scatter",
	} {
		out[name] = &builtin{name, func(m *Machine, a *args) value { return torchFunctions[name].call(m, a) }}
	}
	return out
}

func addShapes(add func(string, func(*Machine, *tensor, *args) value)) {
	add("size", func(_ *Machine, x *tensor, a *args) value {
		if d := a.get(0, "dim"); d != nil {
			return x.x.Dim(int(integer(d)))
		}
		return shapeTuple(x.x)
	})
	add("dim", func(_ *Machine, x *tensor, _ *args) value { return int64(len(x.x.Shape)) })
	add("numel", func(_ *Machine, x *tensor, _ *args) value { return x.x.Numel() })
	add("view", func(m *Machine, x *tensor, a *args) value {
		if _, ok := a.pos[0].(dtype); ok {
			panic(failure("a view of another dtype is not known"))
		}
		return m.known(m.t.View(in(x), m.shapeOf(a.pos)...), x.fact.reshaped())
	})
	add("reshape", func(m *Machine, x *tensor, a *args) value {
		return m.known(m.t.Reshape(in(x), m.shapeOf(a.pos)...), x.fact.reshaped())
	})
	add("expand", func(m *Machine, x *tensor, a *args) value {
		return m.known(m.t.Expand(in(x), m.shapeOf(a.pos)...), x.fact)
	})
	add("contiguous", func(m *Machine, x *tensor, _ *args) value { return m.known(m.t.Contiguous(in(x)), x.fact) })
	add("transpose", func(m *Machine, x *tensor, a *args) value {
		return m.known(m.t.Transpose(in(x), int(integer(a.need(0, "dim0"))), int(integer(a.need(1, "dim1")))), x.fact.reshaped())
	})
	add("permute", func(m *Machine, x *tensor, a *args) value {
		var dims []int
		for _, d := range m.shapeOf(a.pos) {
			dims = append(dims, (int(d)+len(x.x.Shape))%len(x.x.Shape))
		}
		return m.known(m.t.Permute(in(x), dims...), x.fact.reshaped())
	})
	add("unsqueeze", func(m *Machine, x *tensor, a *args) value {
		d := int(integer(a.need(0, "dim")))
		if d < 0 {
			d += len(x.x.Shape) + 1
		}
		return m.known(m.t.Unsqueeze(in(x), d), x.fact.unless(d == len(x.x.Shape)))
	})
	add("squeeze", func(m *Machine, x *tensor, a *args) value {
		if a.get(0, "dim") == nil {
			out := m.t.Alias(in(x))
			for d := len(x.x.Shape) - 1; d >= 0; d-- {
				if x.x.Dim(d) == 1 {
					out = m.t.Squeeze(out, d)
				}
			}
			return m.known(out, x.fact.reshaped())
		}
		d := int(integer(a.need(0, "dim")))
		if x.x.Dim(d) != 1 {
			return m.known(m.t.Alias(in(x)), x.fact)
		}
		return m.known(m.t.Squeeze(in(x), d), x.fact.reshaped())
	})
	add("flatten", func(m *Machine, x *tensor, a *args) value {
		a.only("flatten", "start_dim")
		from := int(integer(a.or(0, "start_dim", int64(0))))
		if from < 0 {
			from += len(x.x.Shape)
		}
		return m.known(m.t.Flatten(in(x), from), x.fact.reshaped())
	})
	add("split", func(m *Machine, x *tensor, a *args) value {
		dim := int(integer(a.or(1, "dim", int64(0))))
		switch a.pos[0].(type) {
		case *list, *tuple:
			return m.tensors(m.t.SplitSizes(in(x), dim, m.shapeOf(a.pos[:1])...))
		}
		return m.evenly(x, integer(a.pos[0]), dim)
	})
	add("chunk", func(m *Machine, x *tensor, a *args) value {
		dim, n := int(integer(a.or(1, "dim", int64(0)))), integer(a.pos[0])
		return m.evenly(x, (x.x.Dim(dim)+n-1)/n, dim)
	})
	add("unbind", func(m *Machine, x *tensor, a *args) value {
		return m.tensors(m.t.Unbind(in(x), int(integer(a.or(0, "dim", int64(0))))))
	})
	add("clone", func(m *Machine, x *tensor, _ *args) value {
		if m.needsGrad(x) {
			return m.tensor(m.t.CloneWithGrad(in(x)))
		}
		return m.known(m.t.Clone(in(x)), x.fact)
	})
	add("detach", func(m *Machine, x *tensor, _ *args) value { return m.known(m.t.Detach(in(x)), x.fact) })
}

// evenly splits a dimension into parts of one size.
func (m *Machine) evenly(x *tensor, size int64, dim int) value {
	if x.x.Dim(dim)%size != 0 {
		panic(failure("a split into parts of different sizes is not known"))
	}
	return m.tensors(m.t.Split(in(x), size, dim))
}

// tensors are those of a tuple.
func (m *Machine) tensors(list []torch.Value) value {
	out := newTuple()
	for _, v := range list {
		out.items = append(out.items, m.tensor(v))
	}
	return out
}

// reshaped is what is still known of numbers in another shape.
func (f fact) reshaped() fact { return f.unless(f.kind == steps) }

func (f fact) unless(gone bool) fact {
	if gone && f.kind == steps {
		return fact{}
	}
	return f
}

func addCasts(add func(string, func(*Machine, *tensor, *args) value)) {
	to := func(m *Machine, x *tensor, d torch.DType) value {
		out := m.known(m.t.To(in(x), d), x.fact)
		if d == torch.Bool && x.fact.kind == constant && x.fact.value != 0 {
			out.fact = always(1)
		}
		return out
	}
	add("to", func(m *Machine, x *tensor, a *args) value {
		a.only("to", "device", "dtype", "non_blocking")
		d, moved := x.x.DType, false
		for _, v := range append(slices.Clone(a.pos), a.get(-1, "dtype"), a.get(-1, "device")) {
			_, card := v.(device)
			moved = moved || card
			switch v := v.(type) {
			case dtype:
				d = torch.DType(v)
			case *tensor:
				d = v.x.DType
			case none, nil, device, string:
			default:
				panic(failure("to(%s) is not known", typeName(v)))
			}
		}
		if x.host && moved {
			return m.known(m.t.Full(d, x.x.Shape...), x.fact)
		}
		return to(m, x, d)
	})
	add("type", func(m *Machine, x *tensor, a *args) value { return to(m, x, dtypeOf(a.need(0, "dtype"), 0)) })
	for name, d := range map[string]torch.DType{"float": torch.Float32, "bool": torch.Bool, "long": torch.Int64, "int": torch.Int32, "half": torch.Float16} {
		add(name, func(m *Machine, x *tensor, _ *args) value { return to(m, x, d) })
	}
	add("type_as", func(m *Machine, x *tensor, a *args) value { return to(m, x, a.pos[0].(*tensor).x.DType) })
	add("item", func(_ *Machine, x *tensor, _ *args) value { return x.item() })
	add("requires_grad_", func(_ *Machine, x *tensor, _ *args) value { x.x.RequireGrad(); return hold(x) })
	fresh := func(name string, v fact) {
		add(name, func(m *Machine, x *tensor, a *args) value {
			a.only(name, "dtype", "device")
			return m.known(m.t.Full(dtypeOf(a.get(-1, "dtype"), x.x.DType), m.shapeOf(a.pos)...), v)
		})
	}
	fresh("new_ones", always(1))
	fresh("new_zeros", always(0))
	fresh("new_empty", fact{})
	add("scatter_", func(m *Machine, x *tensor, a *args) value {
		if y, ok := a.need(2, "value").(*tensor); m.needsGrad(x) || ok && m.needsGrad(y) {
			panic(failure("the gradient of scatter_ is not known"))
		}
		x.fact = fact{}
		return hold(x)
	})
	for _, name := range []string{"copy_", "normal_", "clamp_", "zero_", "fill_", "uniform_"} {
		add(name, func(m *Machine, x *tensor, a *args) value {
			x.fact = fact{}
			source, _ := a.get(0, "src").(*tensor)
			recorded := m.needsGrad(x) || source != nil && m.needsGrad(source)
			switch {
			case recorded && x.part != nil && source != nil:
				m.t.CopyInto(m.t.InPlace(x.part.of), x.part.from, x.part.to, in(source))
			case recorded:
				panic(failure("the gradient of %s is not known", name))
			}
			return hold(x)
		})
	}
	add("repeat", func(m *Machine, x *tensor, a *args) value {
		times := m.shapeOf(a.pos)
		if !m.needsGrad(x) {
			shape := slices.Clone(times)
			for i, n := range x.x.Shape {
				shape[len(times)-len(x.x.Shape)+i] *= n
			}
			return m.known(m.t.Full(x.x.DType, shape...), x.fact.unless(times[len(times)-1] != 1))
		}
		for _, n := range times[1:] {
			if n != 1 || len(times) != len(x.x.Shape) {
				panic(failure("repeating more than the first dimension is not known"))
			}
		}
		return m.known(m.t.Tile(in(x), times[0]), x.fact)
	})
	add("add_", func(m *Machine, x *tensor, a *args) value { return m.tensorInPlace("Add", x, a.pos[0]) })
	add("masked_fill_", func(m *Machine, x *tensor, a *args) value {
		m.t.MaskedFillInPlace(m.t.InPlace(x.x), in(a.need(0, "mask")))
		x.fact = fact{}
		return hold(x)
	})
}

func addReductions(add func(string, func(*Machine, *tensor, *args) value)) {
	add("sum", func(m *Machine, x *tensor, a *args) value { return m.sum(x, a) })
	add("mean", func(m *Machine, x *tensor, a *args) value { return m.mean(x, a) })
	add("all", func(m *Machine, x *tensor, a *args) value {
		if len(a.pos)+len(a.names) > 0 {
			panic(failure("all() of a dimension is not known"))
		}
		out := m.tensor(m.t.All(in(x)))
		switch x.fact.kind {
		case constant:
			out.fact = always(number(x.fact.value != 0))
		case mixed:
			out.fact = always(0)
		}
		return out
	})
	add("cumsum", func(m *Machine, x *tensor, a *args) value {
		if d := integer(a.need(0, "dim")); d >= 0 && int(d) != len(x.x.Shape)-1 || m.needsGrad(x) {
			panic(failure("this cumsum is not known"))
		}
		out := m.t.CumsumLast
		if x.x.DType == torch.Int64 || x.x.DType.IsFloat() || a.get(-1, "dtype") != nil {
			out = m.t.Cumsum
		}
		if d, ok := a.get(-1, "dtype").(dtype); ok && torch.DType(d) != x.x.DType {
			panic(failure("a cumsum in another type is not known"))
		}
		sums := m.tensor(out(in(x)))
		if x.fact == always(0) {
			sums.fact = always(0)
		}
		return sums
	})
	add("argmax", func(m *Machine, x *tensor, a *args) value {
		if integer(a.need(0, "dim")) != -1 || x.x.DType != torch.Int32 {
			panic(failure("this argmax is not known"))
		}
		return m.tensor(m.t.ArgMaxLast(in(x)))
	})
}

// over is the dimension of a reduction, and whether it stays as one of size 1.
func over(x *tensor, a *args) (dim int, keep, all bool) {
	a.only("a reduction", "dim", "keepdim")
	d := a.get(0, "dim")
	if d == nil || d == (none{}) {
		return 0, false, true
	}
	keepDim, _ := a.or(1, "keepdim", false).(bool)
	return (int(integer(d)) + len(x.x.Shape)) % len(x.x.Shape), keepDim, false
}

func (m *Machine) sum(x *tensor, a *args) value {
	dim, keep, all := over(x, a)
	last := dim == len(x.x.Shape)-1
	switch isBool := x.x.DType == torch.Bool; {
	case all && isBool:
		out := m.tensor(m.t.SumBools(in(x)))
		switch x.fact.kind {
		case constant:
			out.fact = always(x.fact.value * float64(x.x.Numel()))
		case mixed:
			out.fact = fact{below, float64(x.x.Numel()), 0}
		}
		return out
	case all && x.x.DType.IsFloat():
		return m.tensor(m.t.SumAll(in(x)))
	case (keep || len(x.x.Shape) == 2) && last && !x.x.DType.IsFloat():
		out := m.t.CountLast(in(x))
		if !keep {
			out = m.t.Squeeze(out, -1)
		}
		return m.tensor(out)
	case keep && last:
		return m.tensor(m.t.SumLast(in(x)))
	case !keep && !all && x.x.DType.IsFloat():
		return m.tensor(m.t.Sum(in(x), dim))
	}
	panic(failure("this sum is not known"))
}

func (m *Machine) mean(x *tensor, a *args) value {
	dim, keep, all := over(x, a)
	switch {
	case all:
		return m.tensor(m.t.Mean(in(x)))
	case keep && dim == len(x.x.Shape)-1:
		return m.tensor(m.t.MeanLast(in(x)))
	case !keep:
		return m.tensor(m.t.MeanOver(in(x), dim))
	}
	panic(failure("this mean is not known"))
}
