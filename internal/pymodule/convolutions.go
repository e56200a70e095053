package pymodule

import (
	"slices"
	"strconv"

	"memorymark/internal/torch"
)

// This file holds modules of torch.nn whose parameters are attributes and nothing else, and
// the convolutions among them.

// layer makes a module of torch.nn. Outside of the construction of a model, parameters are
// on the CPU.
func (m *Machine) layer(name string, init, forward func(m *Machine, x *instance, a *args) value) {
	c := newClass(name, m.types["Module"])
	c.attrs["__init__"] = &builtin{"__init__", func(m *Machine, a *args) (out value) {
		given := &args{a.pos[1:], a.names, a.named}
		m.onBuildDevice(func() { out = init(m, a.pos[0].(*instance), given) })
		return out
	}}
	c.attrs["forward"] = &builtin{"forward", func(m *Machine, a *args) value {
		given := &args{a.pos[1:], a.names, a.named}
		return m.whereTensorsAre(func() value { return forward(m, a.pos[0].(*instance), given) }, given.pos)
	}}
	m.types[name] = c
}

func (m *Machine) onBuildDevice(f func()) {
	if m.building {
		f()
		return
	}
	m.t.OnCPU(f)
}

// parameter gives a module a parameter of its own.
func (m *Machine) parameter(x *instance, name string, dtype torch.DType, shape ...int64) {
	p := m.t.Parameter(dtype, shape...).Named(name)
	x.fields.set(m, name, &tensor{refs: refs{1}, x: m.t.Hold(torch.Borrow(p)).Tensor(), parameter: true, host: m.t.IsOnCPU()})
}

// bufferOf gives a module a buffer of its own.
func (m *Machine) bufferOf(x *instance, name string, dtype torch.DType, shape ...int64) {
	x.fields.set(m, name, &tensor{refs: refs{1}, x: m.t.Buffer(dtype, shape...), buffer: true, host: m.t.IsOnCPU()})
}

// own is a parameter or a buffer of a module, nil if that is None.
func (x *instance) own(name string) *torch.Tensor {
	v, _ := x.fields.get(name)
	if p, ok := v.(*tensor); ok {
		return p.x
	}
	return nil
}

func (x *instance) ownX(name string) torch.X {
	if p := x.own(name); p != nil {
		return torch.Borrow(p)
	}
	return nil
}

// several are n sizes, given as one or as a sequence.
func (m *Machine) several(v value, n int) []int64 {
	out := m.shapeOf([]value{v})
	if len(out) == 1 {
		out = slices.Repeat(out, n)
	}
	return out
}

func tupleOf(sizes []int64) *tuple {
	out := newTuple()
	for _, s := range sizes {
		out.items = append(out.items, s)
	}
	return out
}

// addConvolutions makes nn.Conv1d and its kin.
func (m *Machine) addConvolutions() {
	for dims := 1; dims <= 3; dims++ {
		m.addConvolution("Conv"+strconv.Itoa(dims)+"d", dims, false)
		m.addConvolution("ConvTranspose"+strconv.Itoa(dims)+"d", dims, true)
	}
}

func (m *Machine) addConvolution(name string, dims int, transposed bool) {
	m.layer(name, func(m *Machine, x *instance, a *args) value {
		a.only(name, "in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "bias", "padding_mode", "output_padding", "device", "dtype")
		from, to := integer(a.need(0, "in_channels")), integer(a.need(1, "out_channels"))
		at := []int{5, 6, 7} // dilation, groups, bias
		if transposed {
			at = []int{8, 6, 7}
		}
		c := &torch.Conv{Transposed: transposed, Groups: integer(a.or(at[1], "groups", int64(1)))}
		kernel := m.several(a.need(2, "kernel_size"), dims)
		c.Stride, c.Dilation = m.several(a.or(3, "stride", int64(1)), dims), m.several(a.or(at[0], "dilation", int64(1)), dims)
		c.Output = slices.Repeat([]int64{0}, dims)
		if transposed {
			c.Output = m.several(a.or(5, "output_padding", int64(0)), dims)
		}
		c.Padding = m.paddingOf(a.or(4, "padding", int64(0)), kernel, c.Dilation)
		if mode := a.or(-1, "padding_mode", "zeros"); mode != "zeros" {
			panic(failure("padding_mode %v of %s is not known", mode, name))
		}
		shape := append([]int64{to, from / c.Groups}, kernel...)
		if transposed {
			shape = append([]int64{from, to / c.Groups}, kernel...)
		}
		d := dtypeOf(a.get(-1, "dtype"), m.dtype)
		m.parameter(x, "weight", d, shape...)
		if m.truth(a.or(at[2], "bias", true)) {
			m.parameter(x, "bias", d, to)
		} else {
			x.fields.set(m, "bias", none{})
		}
		for name, v := range map[string]value{
			"in_channels": from, "out_channels": to, "groups": c.Groups, "kernel_size": tupleOf(kernel), "stride": tupleOf(c.Stride), "padding": tupleOf(c.Padding),
			"dilation": tupleOf(c.Dilation), "padding_mode": "zeros",
		} {
			x.fields.set(m, name, v)
		}
		stateOf(x).convolution = c
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		return m.convolved(a.pos[0], x, stateOf(x).convolution, dims)
	})
	c := m.types[name] // _conv_forward(input, weight, bias)
	c.attrs["_conv_forward"] = &builtin{"_conv_forward", func(m *Machine, a *args) value {
		return m.tensor(m.t.Convolve(in(a.pos[1]), in(a.pos[2]), maybe(a.get(3, "bias")), m.paddedBy(a.pos[0].(*instance))))
	}}
}

// convolved is the forward of a convolution, with what attributes say now.
func (m *Machine) convolved(given value, x *instance, c *torch.Conv, dims int) value {
	m.needSameType(given, x.own("weight"))
	in := in(given)
	if dims == 1 && !c.Transposed && c.Groups == 1 && c.Dilation[0] == 1 && x.own("bias") != nil {
		line := &torch.Conv1d{Weight: x.own("weight"), Bias: x.own("bias"), Stride: c.Stride[0], Padding: c.Padding[0]}
		return m.tensor(m.t.Conv1d(in, line))
	}
	return m.tensor(m.t.Convolve(in, x.ownX("weight"), x.ownX("bias"), m.paddedBy(x)))
}

// paddedBy is how a module convolves: its padding may have been changed.
func (m *Machine) paddedBy(x *instance) *torch.Conv {
	c := *stateOf(x).convolution
	if p, ok := x.fields.get("padding"); ok {
		c.Padding = m.several(p, len(c.Stride))
	}
	return &c
}

// paddingOf are the widths of padding, by number or by name.
func (m *Machine) paddingOf(v value, kernel, dilation []int64) []int64 {
	switch v {
	case "valid":
		return slices.Repeat([]int64{0}, len(kernel))
	case "same":
		out := make([]int64, len(kernel))
		for i, k := range kernel {
			if dilation[i]*(k-1)%2 != 0 {
				panic(failure("padding by different widths is not known"))
			}
			out[i] = dilation[i] * (k - 1) / 2
		}
		return out
	}
	return m.several(v, len(kernel))
}
