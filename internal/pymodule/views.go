package pymodule

import (
	"slices"

	"memorymark/internal/torch"
)

// This file holds methods of tensors that repeat, view or change them, and numbers of the host.

// repeated is x.repeat(times).
func (m *Machine) repeated(x *tensor, times []int64) value {
	if !m.needsGrad(x) {
		shape := slices.Clone(times)
		for i, n := range x.x.Shape {
			shape[len(times)-len(x.x.Shape)+i] *= n
		}
		return m.known(m.t.Full(x.x.DType, shape...), x.fact.unless(times[len(times)-1] != 1))
	}
	return m.known(m.t.Repeated(in(x), times), x.fact)
}

// toHost is x.cpu(), or x.to("cpu").
func (m *Machine) toHost(x *tensor, d torch.DType) *tensor {
	m.hosts = true
	return &tensor{refs: refs{1}, x: m.t.OnHost(d, x.x.Shape...), fact: x.fact, host: true}
}

// numbersOf is x.tolist(), of numbers that are known.
func (m *Machine) numbersOf(x *tensor) value {
	if x.values != nil {
		out := newList()
		for _, v := range x.values {
			out.items = append(out.items, x.number(v))
		}
		return out
	}
	if len(x.x.Shape) == 0 {
		return x.number(x.item())
	}
	if len(x.x.Shape) == 1 && (x.fact.kind == steps || x.fact.kind == constant) {
		out := newList()
		m.spendElements(x.x.Shape[0])
		for i := range x.x.Shape[0] {
			out.items = append(out.items, x.number(x.fact.value+float64(i)*x.fact.step))
		}
		return out
	}
	panic(failure("what is in a tensor is needed here, which is not known"))
}

// hostScalar is an element of a vector on the CPU.
func (m *Machine) hostScalar(x *tensor, v float64) *tensor {
	return &tensor{refs: refs{1}, x: m.t.OnHost(x.x.DType), fact: always(v), host: true}
}

// hostVector is a vector on the CPU whose elements are known.
func (m *Machine) hostVector(d torch.DType, values []float64) *tensor {
	m.hosts = true
	return &tensor{refs: refs{1}, x: m.t.OnHost(d, int64(len(values))), values: values, host: true}
}

// number is an element as Python has it.
func (x *tensor) number(v float64) value {
	switch {
	case x.x.DType.IsFloat():
		return v
	case x.x.DType == torch.Bool:
		return v != 0
	}
	return int64(v)
}

// addAttributes adds what tensors say of themselves, and what they give the host.
func addAttributes(add func(string, func(*Machine, *tensor, *args) value)) {
	addViews(add)
	addChanges(add)
	add("cpu", func(m *Machine, x *tensor, _ *args) value {
		if x.host {
			return hold(x)
		}
		return m.toHost(x, x.x.DType)
	})
	add("cuda", func(_ *Machine, x *tensor, _ *args) value { return hold(x) })
	add("tolist", func(m *Machine, x *tensor, _ *args) value { return m.numbersOf(x) })
	add("numpy", func(_ *Machine, x *tensor, _ *args) value { return hold(x) })
	add("item", func(_ *Machine, x *tensor, _ *args) value {
		if x.fact.kind == below { // what it is compared with decides
			return hold(x)
		}
		return x.number(x.item())
	})
	add("type_as", func(m *Machine, x *tensor, a *args) value {
		return tensorMethods["to"].call(m, &args{pos: []value{x, a.pos[0]}})
	})
	add("is_contiguous", func(_ *Machine, x *tensor, _ *args) value { return x.x.IsContiguous() })
	add("stride", func(_ *Machine, x *tensor, a *args) value {
		out := newTuple()
		for _, s := range x.x.Strides() {
			out.items = append(out.items, s)
		}
		if d := a.get(0, "dim"); d != nil {
			return out.items[place(d, len(out.items), "stride")]
		}
		return out
	})
	add("get_device", func(*Machine, *tensor, *args) value { return int64(0) })
	add("element_size", func(_ *Machine, x *tensor, _ *args) value { return x.x.DType.Size() })
	add("nelement", func(_ *Machine, x *tensor, _ *args) value { return x.x.Numel() })
	add("ndimension", func(_ *Machine, x *tensor, _ *args) value { return int64(len(x.x.Shape)) })
	add("new_full", func(m *Machine, x *tensor, a *args) value {
		v, known := a.need(1, "fill_value"), fact{}
		if isNumber(v) {
			known = always(number(v))
		}
		return m.known(m.t.Full(dtypeOf(a.get(-1, "dtype"), x.x.DType), m.shapeOf([]value{a.need(0, "size")})...), known)
	})
	add("new_tensor", func(m *Machine, x *tensor, a *args) value {
		given := &args{pos: a.pos, names: append(slices.Clone(a.names), "device"), named: append(slices.Clone(a.named), device{x.host})}
		return m.tensorOf(given)
	})
}

// addViews adds views, and what copies only if it must.
func addViews(add func(string, func(*Machine, *tensor, *args) value)) {
	add("expand_as", func(m *Machine, x *tensor, a *args) value {
		return m.known(m.t.Expand(in(x), a.pos[0].(*tensor).x.Shape...), x.fact)
	})
	add("view_as", func(m *Machine, x *tensor, a *args) value {
		return m.known(m.t.View(in(x), a.pos[0].(*tensor).x.Shape...), x.fact.reshaped())
	})
	add("reshape_as", func(m *Machine, x *tensor, a *args) value {
		return m.known(m.t.Reshape(in(x), a.pos[0].(*tensor).x.Shape...), x.fact.reshaped())
	})
	add("unflatten", func(m *Machine, x *tensor, a *args) value {
		d := (int(integer(a.need(0, "dim"))) + len(x.x.Shape)) % len(x.x.Shape)
		sizes := m.shapeOf([]value{a.need(1, "sizes")})
		return m.tensor(m.t.View(in(x), slices.Concat(x.x.Shape[:d], sizes, x.x.Shape[d+1:])...))
	})
	add("t", func(m *Machine, x *tensor, _ *args) value {
		if len(x.x.Shape) < 2 {
			return m.known(m.t.Alias(in(x)), x.fact)
		}
		return m.tensor(m.t.Transpose(in(x), 0, 1))
	})
	for _, name := range []string{"swapaxes", "swapdims"} {
		add(name, func(m *Machine, x *tensor, a *args) value {
			return m.tensor(m.t.Transpose(in(x), int(integer(a.pos[0])), int(integer(a.pos[1]))))
		})
	}
	add("movedim", func(m *Machine, x *tensor, a *args) value {
		n := len(x.x.Shape)
		from, to := m.shapeOf(a.pos[:1]), m.shapeOf(a.pos[1:2])
		dims := slices.Repeat([]int{-1}, n)
		var rest []int
		for i := range n {
			if !slices.ContainsFunc(from, func(d int64) bool { return (int(d)+n)%n == i }) {
				rest = append(rest, i)
			}
		}
		for i := range from {
			dims[(int(to[i])+n)%n] = (int(from[i]) + n) % n
		}
		for i := range dims {
			if dims[i] < 0 {
				dims[i], rest = rest[0], rest[1:]
			}
		}
		return m.tensor(m.t.Permute(in(x), dims...))
	})
	add("narrow", func(m *Machine, x *tensor, a *args) value {
		from := integer(a.pos[1])
		d := (int(integer(a.pos[0])) + len(x.x.Shape)) % len(x.x.Shape)
		return m.tensor(m.t.SliceStep(in(x), d, from, from+integer(a.pos[2]), 1))
	})
	add("select", func(m *Machine, x *tensor, a *args) value {
		d := (int(integer(a.pos[0])) + len(x.x.Shape)) % len(x.x.Shape)
		return m.tensor(m.t.Select(in(x), d))
	})
	add("unfold", func(m *Machine, x *tensor, a *args) value {
		return m.tensor(m.t.Windows(in(x), int(integer(a.need(0, "dimension"))), integer(a.need(1, "size")), integer(a.need(2, "step"))))
	})
	add("diagonal", func(m *Machine, x *tensor, a *args) value {
		return m.tensor(m.t.Diagonal(in(x), int(integer(a.or(1, "dim1", int64(0)))), int(integer(a.or(2, "dim2", int64(1))))))
	})
	add("tile", func(m *Machine, x *tensor, a *args) value {
		times := m.shapeOf(a.pos)
		for len(times) < len(x.x.Shape) {
			times = append([]int64{1}, times...)
		}
		return m.repeated(x, times)
	})
	add("ravel", func(m *Machine, x *tensor, _ *args) value { return m.tensor(m.t.Reshape(in(x), -1)) })
}

// addChanges adds methods that change a tensor in place.
func addChanges(add func(string, func(*Machine, *tensor, *args) value)) {
	for name, op := range map[string]string{"mul_": "Mult", "div_": "Div", "sub_": "Sub"} {
		add(name, func(m *Machine, x *tensor, a *args) value { return m.tensorInPlace(op, x, a.pos[0]) })
	}
	scatter := func(adds bool) func(m *Machine, x *tensor, a *args) value {
		return func(m *Machine, x *tensor, a *args) value {
			index := a.need(1, "index")
			source, _ := a.get(2, "src").(*tensor)
			if source == nil {
				source, _ = a.get(2, "source").(*tensor)
			}
			x.fact = fact{}
			var from torch.X
			if source != nil {
				from = in(source)
			}
			m.t.ScatterInPlace(m.t.InPlace(x.x), in(index), from, adds)
			return hold(x)
		}
	}
	add("scatter_", scatter(false))
	add("scatter_add_", scatter(true))
	add("index_add_", scatter(true))
	add("neg_", func(m *Machine, x *tensor, _ *args) value { return m.tensorInPlace("Mult", x, int64(-1)) })
	for _, name := range []string{"relu_", "sigmoid_", "tanh_"} {
		add(name, func(m *Machine, x *tensor, _ *args) value {
			node := map[string]string{"relu_": "Relu", "sigmoid_": "Sigmoid", "tanh_": "Tanh"}[name]
			m.t.UnaryInPlace(node, m.t.InPlace(x.x))
			return hold(x)
		})
	}
	copied := func(name string, change func(m *Machine, x *tensor, a *args) value) { // x.clone() first
		add(name, func(m *Machine, x *tensor, a *args) value {
			var y *tensor
			if m.needsGrad(x) {
				y = m.tensor(m.t.CloneWithGrad(in(x)))
			} else {
				y = m.tensor(m.t.Clone(in(x)))
			}
			m.drop(change(m, y, a))
			return y
		})
	}
	copied("scatter_add", scatter(true))
	copied("index_add", scatter(true))
	add("requires_grad_", func(m *Machine, x *tensor, a *args) value {
		m.setTensorAttribute(x, "requires_grad", a.or(0, "requires_grad", true))
		return hold(x)
	})
	add("masked_scatter", func(m *Machine, x *tensor, a *args) value {
		y := a.pos[1].(*tensor)
		if m.needsGrad(x, y) {
			panic(failure("the gradient of masked_scatter is not known"))
		}
		return m.tensor(m.t.Clone(in(x)))
	})
}
