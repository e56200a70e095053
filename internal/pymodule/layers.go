package pymodule

import (
	"memorymark/internal/torch"
)

// This file holds the modules of torch.nn that compute.

// addLayers makes the modules of torch.nn that compute.
func (m *Machine) addLayers() {
	layer := func(name string, init, forward func(m *Machine, x *instance, a *args) value) {
		c := newClass(name, m.types["Module"])
		for method, f := range map[string]func(m *Machine, x *instance, a *args) value{"__init__": init, "forward": forward} {
			c.attrs[method] = &builtin{method, func(m *Machine, a *args) value {
				return f(m, a.pos[0].(*instance), &args{a.pos[1:], a.names, a.named})
			}}
		}
		m.types[name] = c
	}
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
		return m.tensor(m.t.Linear(in(a.pos[0]), stateOf(x).linear))
	})
	layer("Embedding", func(m *Machine, x *instance, a *args) value {
		a.only("Embedding", "num_embeddings", "embedding_dim", "padding_idx")
		e := m.t.NewEmbedding(integer(a.need(0, "num_embeddings")), integer(a.need(1, "embedding_dim")), m.dtype)
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
		a.only("LayerNorm", "eps", "normalized_shape", "elementwise_affine", "bias")
		size := []value{a.need(0, "normalized_shape")}
		if _, one := size[0].(int64); !one || a.or(2, "elementwise_affine", true) != true {
			panic(failure("this LayerNorm is not known"))
		}
		n := &torch.LayerNorm{}
		if a.or(3, "bias", true) == true {
			n = m.t.NewLayerNorm(m.shapeOf(size)[0], m.dtype)
		} else {
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
	layer("Conv1d", func(m *Machine, x *instance, a *args) value {
		a.only("Conv1d", "kernel_size", "stride", "padding")
		size := func(i int, name string, otherwise value) int64 { return integer(a.or(i, name, otherwise)) }
		c := m.t.NewConv1d(integer(a.pos[0]), integer(a.pos[1]), size(2, "kernel_size", nil), size(3, "stride", int64(1)), size(4, "padding", int64(0)), m.dtype)
		stateOf(x).line = c
		x.fields.set(m, "stride", newTuple(size(3, "stride", int64(1))))
		m.owns(x, "weight", c.Weight)
		m.owns(x, "bias", c.Bias)
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		return m.tensor(m.t.Conv1d(in(a.pos[0]), stateOf(x).line))
	})
	layer("Dropout", func(m *Machine, x *instance, a *args) value {
		a.only("Dropout", "p")
		x.fields.set(m, "p", hold(a.or(0, "p", 0.5)))
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		p, _ := x.fields.get("p")
		return m.tensor(m.t.Dropout(in(a.pos[0]), number(p), m.training))
	})
	layer("Softmax", func(m *Machine, x *instance, a *args) value {
		x.fields.set(m, "dim", hold(a.need(0, "dim")))
		return none{}
	}, func(m *Machine, x *instance, a *args) value {
		dim, _ := x.fields.get("dim")
		return nnFunctions["softmax"].call(m, &args{pos: []value{a.pos[0], dim}})
	})
	nothing := func(*Machine, *instance, *args) value { return none{} }
	for name, function := range map[string]string{"Tanh": "tanh", "ReLU": "relu", "SiLU": "silu", "GELU": "gelu", "Sigmoid": "sigmoid"} {
		layer(name, nothing, func(m *Machine, _ *instance, a *args) value { return nnFunctions[function].call(m, a) })
	}
	layer("Identity", nothing, func(_ *Machine, _ *instance, a *args) value { return hold(a.pos[0]) })
	layer("CrossEntropyLoss", nothing, func(m *Machine, _ *instance, a *args) value {
		return m.tensor(m.t.CrossEntropy(in(a.pos[0]), in(a.pos[1])))
	})
	m.addParameters()
}

// owns gives a layer a parameter, which the layer of package torch keeps.
func (m *Machine) owns(x *instance, name string, p *torch.Tensor) {
	if p == nil {
		x.fields.set(m, name, none{})
		return
	}
	x.fields.set(m, name, &tensor{refs: refs{1}, x: m.t.Hold(torch.Borrow(p)).Tensor(), parameter: true})
}

// addParameters makes nn.Parameter, nn.Buffer and torch.Tensor.
func (m *Machine) addParameters() {
	m.types["Tensor"] = newClass("Tensor", m.types["object"])
	m.types["Parameter"] = newClass("Parameter", m.types["Tensor"])
	m.types["Parameter"].make = func(m *Machine, _ *class, a *args) value {
		a.only("Parameter", "data", "requires_grad")
		x := a.need(0, "data").(*tensor)
		p := m.t.Adopt(m.t.Detach(in(x)))
		return &tensor{refs: refs{1}, x: p, parameter: true}
	}
	m.types["Buffer"] = newClass("Buffer", m.types["Tensor"])
	m.types["Buffer"].make = func(m *Machine, _ *class, a *args) value {
		x := a.need(0, "data").(*tensor)
		return &tensor{refs: refs{1}, x: m.t.Hold(in(x)).Tensor(), fact: x.fact, buffer: true}
	}
}
