package pymodule

// This file holds functions of torch that move elements: rolls, flips, gathers.

// addMoves adds what moves elements and picks them.
func addMoves(add adder) {
	add("index_select", func(m *Machine, a *args) value {
		x, dim := a.pos[0].(*tensor), int(integer(a.need(1, "dim")))
		if !m.needsGrad(x) && dim == 0 {
			return m.tensor(m.t.Rows(in(x), in(a.need(2, "index"))))
		}
		return m.tensor(m.t.IndexSelect(in(x), dim, in(a.need(2, "index"))))
	})
	add("scatter", func(m *Machine, a *args) value {
		x := a.pos[0].(*tensor)
		if y, ok := a.or(3, "src", nil).(*tensor); ok {
			return m.tensor(m.t.Scatter(in(x), in(a.need(2, "index")), in(y)))
		}
		return m.tensor(m.t.Scatter(in(x), in(a.need(2, "index")), nil))
	})
	add("flip", func(m *Machine, a *args) value { return m.tensor(m.t.Flip(in(a.pos[0]))) })
	for _, name := range []string{"tril", "triu"} {
		add(name, func(m *Machine, a *args) value { return m.tensor(m.t.Triangle(in(a.pos[0]))) })
	}
	add("roll", func(m *Machine, a *args) value {
		dims := a.or(2, "dims", nil)
		if dims == nil {
			x := a.pos[0].(*tensor)
			flat := m.t.Roll(m.t.View(m.t.Contiguous(in(x)), -1), 1)
			return m.tensor(m.t.View(flat, x.x.Shape...))
		}
		return m.tensor(m.t.Roll(in(a.pos[0]), len(m.shapeOf([]value{dims}))))
	})
	for _, name := range []string{"concat", "concatenate"} {
		add(name, func(m *Machine, a *args) value { return torchFunctions["cat"].call(m, a) })
	}
	add("hstack", func(m *Machine, a *args) value {
		return torchFunctions["cat"].call(m, &args{pos: []value{a.pos[0], int64(1)}})
	})
	add("vstack", func(m *Machine, a *args) value {
		return torchFunctions["cat"].call(m, &args{pos: []value{a.pos[0], int64(0)}})
	})
	add("meshgrid", func(m *Machine, a *args) value {
		list := a.pos
		if l, ok := itemsIn(a.pos[0]); ok {
			list = l
		}
		var shape []int64
		for _, v := range list {
			shape = append(shape, v.(*tensor).x.Numel())
		}
		swap := a.or(-1, "indexing", "ij") == "xy" && len(shape) > 1
		if swap {
			shape[0], shape[1] = shape[1], shape[0]
		}
		out := newTuple()
		for i, v := range list {
			if swap && i < 2 {
				i = 1 - i
			}
			x := m.t.Hold(in(v))
			for d := range shape {
				if d != i {
					x = m.t.Unsqueeze(x, d)
				}
			}
			out.items = append(out.items, m.tensor(m.t.Expand(x, shape...)))
		}
		return out
	})
	add("broadcast_to", func(m *Machine, a *args) value {
		return m.known(m.t.Expand(in(a.pos[0]), m.shapeOf(a.pos[1:])...), a.pos[0].(*tensor).fact)
	})
	add("diag", func(m *Machine, a *args) value {
		x := a.pos[0].(*tensor)
		n := x.x.Dim(0)
		if len(x.x.Shape) == 1 {
			return m.plainOf(x, n, n)
		}
		return m.plainOf(x, min(n, x.x.Dim(1)))
	})
}

// plainOf is a new tensor of another's type that needs no gradient.
func (m *Machine) plainOf(x *tensor, shape ...int64) *tensor {
	if m.needsGrad(x) {
		panic(failure("the gradient of this operator is not known"))
	}
	return m.tensor(m.t.Full(x.x.DType, shape...))
}
