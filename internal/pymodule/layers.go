package pymodule

import (
	"memorymark/internal/torch"
)

// This file holds the modules of torch.nn that compute.

// addLayers makes the modules of torch.nn that compute.
func (m *Machine) addLayers() {
	layer := m.layer
	layer("Linear", func(m *Machine, x *instance, a *args) value {
		a.only("Linear", "in_features", "out_features", "bias", "device", "dtype")
		n, out := integer(a.need(0, "in_features")), integer(a.need(1, "out_features"))
		l := m.t.NewLinear(n, out, m.truth(a.or(2, "bias", true)), dtypeOf(a.get(-1, "dtype"), m.dtype))
		stateOf(x).linear = l
		x.fields.set(m, "in_features", n)
		x.fields.set(m, "out_features", out)
		m.owns(x, "weight", l.Weight)
		m.owns(x, "bias", l.Bias)
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		m.needSameType(a.pos[0], stateOf(x).linear.Weight)
		return m.tensor(m.t.Linear(in(a.pos[0]), stateOf(x).linear))
	})
	layer("Embedding", func(m *Machine, x *instance, a *args) value {
		a.only("Embedding", "num_embeddings", "embedding_dim", "padding_idx", "_freeze", "device", "dtype", "scale_grad_by_freq")
		table := m.t.NewEmbedding
		if a.or(2, "padding_idx", none{}) != (none{}) {
			table = m.t.NewPaddedEmbedding
		}
		e := table(integer(a.need(0, "num_embeddings")), integer(a.need(1, "embedding_dim")), dtypeOf(a.get(-1, "dtype"), m.dtype))
		if a.or(-1, "_freeze", false) == true {
			e.Freeze()
		}
		stateOf(x).embedding = e
		x.fields.set(m, "num_embeddings", hold(a.need(0, "num_embeddings")))
		x.fields.set(m, "embedding_dim", hold(a.need(1, "embedding_dim")))
		x.fields.set(m, "padding_idx", hold(a.or(2, "padding_idx", none{})))
		m.owns(x, "weight", e.Weight)
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		return m.tensor(m.t.Embedding(in(a.pos[0]), stateOf(x).embedding))
	})
	layer("LayerNorm", func(m *Machine, x *instance, a *args) value {
		a.only("LayerNorm", "eps", "normalized_shape", "elementwise_affine", "bias", "device", "dtype")
		size := []value{a.need(0, "normalized_shape")}
		if len(m.shapeOf(size)) != 1 {
			panic(failure("this LayerNorm is not known"))
		}
		n := &torch.LayerNorm{}
		switch {
		case a.or(2, "elementwise_affine", true) != true:
		case a.or(3, "bias", true) == true:
			n = m.t.NewLayerNorm(m.shapeOf(size)[0], m.dtype)
		default:
			n.Weight = m.t.Parameter(m.dtype, m.shapeOf(size)...)
		}
		stateOf(x).norm = n
		x.fields.set(m, "normalized_shape", newTuple(m.shapeOf(size)[0]))
		x.fields.set(m, "eps", hold(a.or(1, "eps", 1e-5)))
		m.owns(x, "weight", n.Weight)
		m.owns(x, "bias", n.Bias)
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		return m.tensor(m.t.LayerNorm(in(a.pos[0]), stateOf(x).norm))
	})
	layer("Conv1D", func(m *Machine, x *instance, a *args) value { // transformers/pytorch_utils.py
		c := m.t.NewConv1D(integer(a.need(0, "nf")), integer(a.need(1, "nx")), m.dtype)
		stateOf(x).conv = c
		x.fields.set(m, "nf", hold(a.need(0, "nf")))
		m.owns(x, "weight", c.Weight)
		m.owns(x, "bias", c.Bias)
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		return m.tensor(m.t.Conv1D(in(a.pos[0]), stateOf(x).conv))
	})
	layer("Dropout", func(m *Machine, x *instance, a *args) value {
		a.only("Dropout", "p", "inplace")
		x.fields.set(m, "p", hold(a.or(0, "p", 0.5)))
		x.fields.set(m, "inplace", hold(a.or(1, "inplace", false)))
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		p, _ := x.fields.get("p")
		if changes, _ := x.fields.get("inplace"); changes == true {
			return m.dropoutInPlace(a.pos[0].(*tensor), number(p), m.trains(x))
		}
		return m.tensor(m.t.Dropout(in(a.pos[0]), number(p), m.trains(x)))
	})
	nothing := func(*Machine, *instance, *args) value { return none{} }
	layer("Identity", nothing, func(_ *Machine, _ *instance, a *args) value { return hold(a.pos[0]) })
	layer("Flatten", func(m *Machine, x *instance, a *args) value {
		x.fields.set(m, "start_dim", hold(a.or(0, "start_dim", int64(1))))
		x.fields.set(m, "end_dim", hold(a.or(1, "end_dim", int64(-1))))
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		from, _ := x.fields.get("start_dim")
		to, _ := x.fields.get("end_dim")
		return tensorMethods["flatten"].call(m, &args{pos: []value{a.pos[0], from, to}})
	})
	m.addConvolutions()
	m.addNorms()
	m.addPools()
	m.addFunctionModules()
	m.addPadding()
	m.addAttentionModule()
	m.addAutogradFunction()
	m.addParameters()
}

// needSameType fails where an operator of a user's own program would: outside of autocast its
// input has the type of its weight.
func (m *Machine) needSameType(v value, weight *torch.Tensor) {
	if x, ok := v.(*tensor); ok && len(m.library.own) > 0 && !m.t.Casting() && x.x.DType != weight.DType {
		panic(raise("RuntimeError", "the input is in another type than the weight, and there is no autocast"))
	}
}

// owns gives a layer a parameter, which the layer of package torch keeps.
func (m *Machine) owns(x *instance, name string, p *torch.Tensor) {
	if p == nil {
		x.fields.set(m, name, none{})
		return
	}
	x.fields.set(m, name, &tensor{refs: refs{1}, x: m.t.Hold(torch.Borrow(p)).Tensor(), parameter: true, host: m.t.IsOnCPU()})
}

// addParameters makes nn.Parameter, nn.Buffer and torch.Tensor.
func (m *Machine) addParameters() {
	m.types["Tensor"] = newClass("Tensor", m.types["object"])
	m.types["Tensor"].make = func(m *Machine, c *class, a *args) value {
		if c != m.types["Tensor"] {
			panic(failure("a class derived from a tensor is not known"))
		}
		return m.newTensor(a, m.dtype)
	}
	m.types["Parameter"] = newClass("Parameter", m.types["Tensor"])
	m.types["Parameter"].make = func(m *Machine, _ *class, a *args) value {
		a.only("Parameter", "data", "requires_grad")
		x := a.need(0, "data").(*tensor)
		var p *torch.Tensor
		m.whereTensorsAre(func() value { p = m.t.Adopt(m.t.Detach(in(x))); return none{} }, a.pos)
		if !p.IsFloatingPoint() || a.or(1, "requires_grad", true) == false {
			p.Freeze()
		}
		return &tensor{refs: refs{1}, x: p, parameter: true, host: x.host}
	}
	m.types["Buffer"] = newClass("Buffer", m.types["Tensor"])
	m.types["Buffer"].make = func(m *Machine, _ *class, a *args) value {
		x := a.need(0, "data").(*tensor)
		return &tensor{refs: refs{1}, x: m.t.Hold(in(x)).Tensor(), fact: x.fact, host: x.host, buffer: true, passing: a.or(1, "persistent", true) == false}
	}
}
