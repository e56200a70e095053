package pymodule

import (
	"memorymark/internal/torch"
)

// This file holds reductions as methods of tensors.

func (m *Machine) sum(x *tensor, a *args) value {
	dims, keep := m.dimsOf(x, a, 0)
	all, last := len(dims) == len(x.x.Shape) && a.get(0, "dim") == nil, len(dims) == 1 && dims[0] == len(x.x.Shape)-1
	d := dtypeOf(a.get(-1, "dtype"), torch.NoDType)
	switch {
	case all && x.x.DType == torch.Bool && d == torch.NoDType:
		out := m.tensor(m.t.SumBools(in(x)))
		switch x.fact.kind {
		case constant:
			out.fact = always(x.fact.value * float64(x.x.Numel()))
		case mixed:
			out.fact = fact{below, float64(x.x.Numel()), 0}
		}
		return out
	case (keep || len(x.x.Shape) == 2) && last && !x.x.DType.IsFloat() && d == torch.NoDType:
		out := m.t.CountLast(in(x))
		if !keep {
			out = m.t.Squeeze(out, -1)
		}
		counted := m.tensor(out)
		if x.x.DType == torch.Bool {
			counted.fact = fact{below, float64(x.x.Dim(-1)), 0}
		}
		return counted
	}
	if d != torch.NoDType && d != x.x.DType && x.x.DType.IsFloat() { // cast first
		wide := m.t.To(in(x), d)
		return m.tensor(m.t.SumOver(wide, dims, keep, torch.NoDType))
	}
	out := m.tensor(m.t.SumOver(in(x), dims, keep, d))
	if x.x.DType == torch.Bool {
		out.fact = fact{below, float64(x.x.Numel() / max(out.x.Numel(), 1)), 0}
	}
	if x.fact.kind == constant && !x.x.DType.IsFloat() {
		out.fact = always(x.fact.value * float64(x.x.Numel()/max(out.x.Numel(), 1)))
	}
	return out
}

func (m *Machine) mean(x *tensor, a *args) value {
	dims, keep := m.dimsOf(x, a, 0)
	if d := dtypeOf(a.get(-1, "dtype"), x.x.DType); d != x.x.DType {
		return m.tensor(m.t.MeanDims(m.t.To(in(x), d), dims, keep))
	}
	if a.get(0, "dim") == nil {
		return m.tensor(m.t.Mean(in(x)))
	}
	return m.tensor(m.t.MeanDims(in(x), dims, keep))
}

func addMoreReductions(add func(string, func(*Machine, *tensor, *args) value)) {
	for _, name := range []string{"all", "any"} {
		add(name, func(m *Machine, x *tensor, a *args) value {
			dims, keep := m.dimsOf(x, a, 0)
			var out *tensor
			if a.get(0, "dim") == nil {
				out = m.tensor(m.t.All(in(x)))
			} else {
				out = m.tensor(m.t.BoolOver(in(x), dims, keep))
			}
			switch {
			case x.fact.kind == constant:
				out.fact = always(number(x.fact.value != 0))
			case x.fact.kind == ends && name == "any": // no token is padding unless a mask says so
				out.fact = always(0)
			case x.fact.kind == mixed && a.get(0, "dim") == nil:
				out.fact = always(number(name == "any"))
			}
			return out
		})
	}
	add("cumsum", func(m *Machine, x *tensor, a *args) value {
		dim := int(integer(a.need(0, "dim")))
		d := dtypeOf(a.get(-1, "dtype"), torch.NoDType)
		if !x.x.DType.IsFloat() && d == torch.NoDType {
			d = torch.Int64
		}
		var out torch.Value
		if last := dim == -1 || dim == len(x.x.Shape)-1; last && d == torch.Int64 && x.x.DType != torch.Int64 && a.get(-1, "dtype") == nil {
			out = m.t.CumsumLast(in(x))
		} else {
			out = m.t.CumsumOver(in(x), dim, d)
		}
		sums := m.tensor(out)
		if x.values != nil {
			sum := 0.0
			for _, v := range x.values {
				sum += v
				sums.values = append(sums.values, sum)
			}
		}
		if x.fact == always(0) {
			sums.fact = always(0)
		}
		return sums
	})
	for _, name := range []string{"argmax", "argmin"} {
		add(name, func(m *Machine, x *tensor, a *args) value {
			dims, keep := m.dimsOf(x, a, 0)
			return m.tensor(m.t.ArgMax(in(x), dims, keep))
		})
	}
	for _, name := range []string{"amax", "amin"} {
		add(name, func(m *Machine, x *tensor, a *args) value {
			dims, keep := m.dimsOf(x, a, 0)
			return m.tensor(m.t.Amax(in(x), dims, keep))
		})
	}
	for _, name := range []string{"var", "std"} {
		add(name, func(m *Machine, x *tensor, a *args) value {
			dims, _ := m.dimsOf(x, a, 0)
			keep, _ := a.or(-1, "keepdim", false).(bool)
			return m.tensor(m.t.Variance(in(x), dims, keep, name == "std"))
		})
	}
	add("norm", func(m *Machine, x *tensor, a *args) value {
		dims, keep := m.dimsOf(x, a, 1)
		out := m.t.NormOver(in(x), dims...)
		if !keep {
			for i := len(dims) - 1; i >= 0; i-- {
				out = m.t.Squeeze(out, dims[i])
			}
		}
		return m.tensor(out)
	})
	add("prod", func(m *Machine, x *tensor, a *args) value {
		if m.needsGrad(x) {
			panic(failure("the gradient of prod is not known"))
		}
		dims, keep := m.dimsOf(x, a, 0)
		out := m.tensor(m.t.SumOver(in(x), dims, keep, torch.NoDType))
		if len(x.values) > 0 {
			product := 1.0
			for _, v := range x.values {
				product *= v
			}
			out.fact = always(product)
		}
		return out
	})
	add("count_nonzero", func(m *Machine, x *tensor, a *args) value {
		dims, keep := m.dimsOf(x, a, 0)
		return m.tensor(m.t.SumOver(in(x), dims, keep, torch.Int64))
	})
}
