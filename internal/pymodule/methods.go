package pymodule

import (
	"slices"

	"memorymark/internal/torch"
)

// plainFormat is torch.contiguous_format.
const plainFormat = "contiguous_format"

// tensorMethods are the methods of tensors, by name.
var tensorMethods map[string]*builtin

func init() {
	tensorMethods = methodsOfTensor()
	placeOperators()
}

// tensorAttribute is x.name, and what it is bound to if it is a method.
func (m *Machine) tensorAttribute(x *tensor, name string) (f, self value) {
	switch name {
	case "shape":
		return shapeTuple(x.x), nil
	case "dtype":
		return dtype(x.x.DType), nil
	case "device":
		return device{x.host}, nil
	case "ndim":
		return int64(len(x.x.Shape)), nil
	case "requires_grad":
		return x.x.RequiresGrad(), nil
	case "data":
		return &tensor{refs: refs{1}, x: m.t.Detach(in(x)).Tensor(), fact: x.fact, host: x.host}, nil
	case "is_cuda":
		return !x.host, nil
	case "grad":
		return none{}, nil
	case "_is_hf_initialized":
		return false, nil
	case "T":
		return m.tensor(m.t.Transpose(in(x), 0, 1)), nil
	case "mT":
		return m.tensor(m.t.Transpose(in(x), -2, -1)), nil
	case "is_leaf":
		return x.parameter, nil
	case "is_meta", "is_sparse", "is_quantized":
		return false, nil
	case "layout":
		return none{}, nil
	case "itemsize":
		return x.x.DType.Size(), nil
	case "nbytes":
		return x.x.DType.Size() * x.x.Numel(), nil
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
		} else {
			x.x.Freeze()
		}
		return
	case "data":
		if y, ok := to.(*tensor); ok && slices.Equal(y.x.Shape, x.x.Shape) && y.x.DType == x.x.DType {
			if x.parameter && y != x && y.n == 1 {
				m.t.TakeData(x.x, y.x)
			}
			m.drop(to)
			return
		}
	case "_is_hf_initialized", "_no_weight_decay", "_no_reinit", "_no_init", "_is_hooked":
		return
	}
	panic(failure("setting %s of a tensor is not known", name))
}

func methodsOfTensor() map[string]*builtin {
	out := make(map[string]*builtin)
	add := func(name string, call func(m *Machine, x *tensor, a *args) value) {
		out[name] = &builtin{name, func(m *Machine, a *args) value {
			a.only(name, "dim", "dims", "dim0", "dim1", "keepdim", "dtype", "device", "non_blocking", "copy", "start_dim", "mask", "value", "chunks", "src", "min", "max",
				"end_dim", "sizes", "size", "step", "dimension", "index", "other", "repeats", "memory_format", "axis", "unbiased", "correction", "ord", "p", "diagonal",
				"sorted", "descending", "k", "largest", "as_tuple", "source", "fill_value", "alpha", "split_size_or_sections", "exponent", "mean", "std", "bool",
				"requires_grad", "generator", "pin_memory", "accumulate", "values", "indices", "split_size", "shifts", "as_complex", "decimals", "rounding_mode", "reduce", "output_size")
			return call(m, a.pos[0].(*tensor), &args{a.pos[1:], a.names, a.named})
		}}
	}
	addShapes(add)
	addCasts(add)
	addReductions(add)
	addAttributes(add)
	for name := range unaries {
		out[name] = torchFunctions[name]
	}
	for name := range steadies {
		out[name] = torchFunctions[name]
	}
	for _, name := range []string{
		"pow", "rsqrt", "tanh", "sigmoid", "exp", "softmax", "matmul", "masked_fill", "gather", "where",
		"eq", "ne", "lt", "le", "gt", "ge", "max", "min", "clamp", "clip", "relu", "topk", "square", "repeat_interleave", "index_select", "scatter",
		"add", "mul", "sub", "div", "bmm", "maximum", "minimum", "flip", "roll", "tril", "triu", "diag", "broadcast_to", "logsumexp", "sort", "argsort", "nonzero",
		"log_softmax", "baddbmm", "addmm", "logical_not", "logical_and", "logical_or", "isnan", "isinf", "isfinite", "clamp_min", "clamp_max", "neg",
		"bincount", "histc", "is_floating_point", "diff", "greater", "less", "remainder", "floor_divide", "multiply", "outer",
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
		if d, ok := a.pos[0].(dtype); ok {
			if torch.DType(d).Size() != x.x.DType.Size() {
				panic(failure("a view of another dtype is not known"))
			}
			return m.tensor(m.t.Alias(in(x)))
		}
		return m.reshaped(m.t.View(in(x), m.shapeOf(a.pos)...), x)
	})
	add("reshape", func(m *Machine, x *tensor, a *args) value {
		return m.reshaped(m.t.Reshape(in(x), m.shapeOf(a.pos)...), x)
	})
	add("expand", func(m *Machine, x *tensor, a *args) value {
		return m.known(m.t.Expand(in(x), m.shapeOf(a.pos)...), x.fact)
	})
	add("contiguous", func(m *Machine, x *tensor, a *args) value {
		if f := a.or(0, "memory_format", plainFormat); f != plainFormat {
			panic(failure("contiguous(memory_format=…) is not known"))
		}
		return m.known(m.t.Contiguous(in(x)), x.fact)
	})
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
		if d := a.get(0, "dim"); d != nil && len(x.x.Shape) == 0 {
			return m.known(m.t.Alias(in(x)), x.fact)
		}
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
		from := int(integer(a.or(0, "start_dim", int64(0))))
		if from < 0 {
			from += len(x.x.Shape)
		}
		to := int(integer(a.or(1, "end_dim", int64(-1))))
		if to < 0 {
			to += len(x.x.Shape)
		}
		if len(x.x.Shape) == 0 {
			return m.known(m.t.Reshape(in(x), 1), x.fact)
		}
		if from == to {
			return hold(x)
		}
		shape := slices.Concat(x.x.Shape[:from], []int64{-1}, x.x.Shape[to+1:])
		return m.known(m.t.Reshape(in(x), shape...), x.fact.reshaped())
	})
	add("split", func(m *Machine, x *tensor, a *args) value {
		dim := int(integer(a.or(1, "dim", int64(0))))
		if x.values != nil {
			l, at := newTuple(), 0
			for _, n := range m.shapeOf(a.pos[:1]) {
				l.items = append(l.items, m.hostVector(x.x.DType, x.values[at:at+int(n)]))
				at += int(n)
			}
			return l
		}
		size := a.get(0, "split_size")
		if size == nil {
			size = a.need(0, "split_size_or_sections")
		}
		switch size.(type) {
		case *list, *tuple:
			return m.tensors(m.t.SplitSizes(in(x), dim, m.shapeOf([]value{size})...))
		}
		return m.evenly(x, integer(size), dim)
	})
	add("chunk", func(m *Machine, x *tensor, a *args) value {
		dim, n := int(integer(a.or(1, "dim", int64(0)))), integer(a.need(0, "chunks"))
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
	if rest := x.x.Dim(dim) % size; rest != 0 {
		sizes := slices.Repeat([]int64{size}, int(x.x.Dim(dim)/size))
		return m.tensors(m.t.SplitSizes(in(x), dim, append(sizes, rest)...))
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

// reshaped is a tensor in another shape: numbers that go up along a row still do if rows are
// as long.
func (m *Machine) reshaped(v torch.Value, x *tensor) *tensor {
	old, now := x.x.Shape, v.Tensor().Shape
	if len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		return m.known(v, x.fact)
	}
	return m.known(v, x.fact.reshaped())
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
		a.only("to", "device", "dtype", "non_blocking", "memory_format")
		if f := a.or(-1, "memory_format", plainFormat); f != plainFormat {
			panic(failure("to(memory_format=…) is not known"))
		}
		into := to
		if a.get(-1, "memory_format") != nil {
			into = func(m *Machine, x *tensor, d torch.DType) value { return m.known(m.t.ToContiguous(in(x), d), x.fact) }
		}
		d, moved := x.x.DType, false
		for _, v := range append(slices.Clone(a.pos), a.get(-1, "dtype"), a.get(-1, "device")) {
			if at, ok := v.(device); ok {
				moved = at.cpu != x.host
			}
			if v == "cpu" {
				moved = !x.host
			}
			switch v := v.(type) {
			case dtype:
				d = torch.DType(v)
			case *tensor:
				d, moved = v.x.DType, v.host != x.host
			case none, nil, device, string, bool:
			default:
				panic(failure("to(%s) is not known", typeName(v)))
			}
		}
		switch {
		case x.host && moved:
			return m.known(m.t.Full(d, x.x.Shape...), x.fact)
		case moved:
			return m.toHost(x, d)
		}
		if x.host {
			return m.whereTensorsAre(func() value { return into(m, x, d) }, []value{x})
		}
		return into(m, x, d)
	})
	add("type", func(m *Machine, x *tensor, a *args) value { return to(m, x, dtypeOf(a.need(0, "dtype"), 0)) })
	for name, d := range map[string]torch.DType{"float": torch.Float32, "bool": torch.Bool, "long": torch.Int64, "int": torch.Int32, "half": torch.Float16, "bfloat16": torch.BFloat16} {
		add(name, func(m *Machine, x *tensor, _ *args) value { return to(m, x, d) })
	}
	add("type_as", func(m *Machine, x *tensor, a *args) value { return to(m, x, a.pos[0].(*tensor).x.DType) })
	add("item", func(_ *Machine, x *tensor, _ *args) value { return x.item() })
	add("requires_grad_", func(_ *Machine, x *tensor, _ *args) value { x.x.RequireGrad(); return hold(x) })
	fresh := func(name string, v fact) {
		add(name, func(m *Machine, x *tensor, a *args) value {
			sizes := a.pos
			if s := a.get(-1, "size"); s != nil {
				sizes = []value{s}
			}
			shape := m.shapeOf(sizes)
			if m.mapped > 0 && len(shape) == 0 { // one for each that is mapped
				shape = x.x.Shape
			}
			return m.known(m.t.Full(dtypeOf(a.get(-1, "dtype"), x.x.DType), shape...), v)
		})
	}
	fresh("new_ones", always(1))
	fresh("new_zeros", always(0))
	fresh("new_empty", fact{})
	for _, name := range []string{"copy_", "normal_", "clamp_", "zero_", "fill_", "uniform_", "exponential_", "bernoulli_", "random_", "trunc_normal_", "log_", "exp_", "erfinv_", "clamp_min_", "clamp_max_"} {
		add(name, func(m *Machine, x *tensor, a *args) value {
			x.fact = fact{}
			source, _ := a.get(0, "src").(*tensor)
			recorded := m.needsGrad(x) || source != nil && m.needsGrad(source)
			switch {
			case recorded && x.part != nil && source != nil:
				m.t.CopyInto(m.t.InPlace(x.part.of), x.part.from, x.part.to, in(source))
			case recorded && source != nil && name == "copy_" && !x.x.IsView():
				m.t.CopyWhole(m.t.InPlace(x.x), in(source))
			case recorded:
				panic(failure("the gradient of %s is not known", name))
			}
			return hold(x)
		})
	}
	add("repeat", func(m *Machine, x *tensor, a *args) value {
		return m.repeated(x, m.shapeOf(a.pos))
	})
	add("add_", func(m *Machine, x *tensor, a *args) value { return m.tensorInPlace("Add", x, a.pos[0]) })
	add("bitwise_or_", func(m *Machine, x *tensor, a *args) value { return m.tensorInPlace("BitOr", x, a.pos[0]) })
	add("masked_fill_", func(m *Machine, x *tensor, a *args) value {
		checkFits(x, a.get(1, "value"))
		m.t.MaskedFillInPlace(m.t.InPlace(x.x), in(a.need(0, "mask")))
		if x.fact.kind != tokens {
			x.fact = fact{}
		}
		return hold(x)
	})
}

func addReductions(add func(string, func(*Machine, *tensor, *args) value)) {
	add("sum", func(m *Machine, x *tensor, a *args) value { return m.sum(x, a) })
	add("mean", func(m *Machine, x *tensor, a *args) value { return m.mean(x, a) })
	addMoreReductions(add)
}
