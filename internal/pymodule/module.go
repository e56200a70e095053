package pymodule

import (
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/torch"
	"memorymark/internal/trace"
)

// This file is nn.Module, and those of torch.nn that hold others.

// moduleState is what Go has of an nn.Module.
type moduleState struct {
	parent *instance // that it was first put into, nil for the model itself
	name   string
	path   string // from the model, once it was asked for
	known  bool   // the path is
	// What it is called by the module at a path, which calls it.
	caller, part string
	index        int // within a list, -1 if it is in none
	counted      bool
	// What is the module's, if it is one of torch.nn.
	linear      *torch.Linear
	embedding   *torch.Embedding
	norm        *torch.LayerNorm
	conv        *torch.Conv1D
	line        *torch.Conv1d
	items       []*instance // of a list
	initialized bool
}

func stateOf(x *instance) *moduleState { return x.native.(*moduleState) }

// addModules makes nn.Module and its kin.
func (m *Machine) addModules() {
	object := m.types["object"]
	module := newClass("Module", object)
	module.make = func(m *Machine, c *class, a *args) value {
		x := &instance{refs: refs{1}, class: c, native: &moduleState{}}
		m.initialize(x, a)
		return x
	}
	m.types["Module"] = module
	module.attrs["__init__"] = &builtin{"__init__", func(*Machine, *args) value { return none{} }}
	module.attrs["__setattr__"] = &builtin{"__setattr__", func(m *Machine, a *args) value {
		setModuleAttribute(m, a.pos[0].(*instance), a.pos[1].(string), hold(a.pos[2]))
		return none{}
	}}
	module.attrs["__call__"] = &builtin{"__call__", callModule}
	module.attrs["training"] = &property{
		get: &builtin{"training", func(m *Machine, _ *args) value { return m.training }},
		set: &builtin{"training", func(*Machine, *args) value { return none{} }},
	}
	methods := map[string]func(m *Machine, x *instance, a *args) value{
		"register_buffer": func(m *Machine, x *instance, a *args) value {
			if b, ok := a.need(1, "tensor").(*tensor); ok {
				b.buffer = true
			}
			x.fields.set(m, a.pos[0].(string), hold(a.need(1, "tensor")))
			return none{}
		},
		"register_parameter": func(m *Machine, x *instance, a *args) value {
			x.fields.set(m, a.pos[0].(string), hold(a.pos[1]))
			return none{}
		},
		"requires_grad_": func(m *Machine, x *instance, a *args) value {
			if s := stateOf(x); len(a.pos) != 1 || a.pos[0] != false || s.embedding == nil {
				panic(failure("requires_grad_ of this module is not known"))
			}
			stateOf(x).embedding.Freeze()
			return hold(x)
		},
		"add_module": func(m *Machine, x *instance, a *args) value {
			setModuleAttribute(m, x, a.pos[0].(string), hold(a.pos[1]))
			return none{}
		},
	}
	for name, f := range methods {
		module.attrs[name] = &builtin{name, func(m *Machine, a *args) value {
			return f(m, a.pos[0].(*instance), &args{a.pos[1:], a.names, a.named})
		}}
	}
	m.addModuleLists()
	m.addLayers()
}

func setModuleAttribute(m *Machine, x *instance, name string, v value) {
	if part, ok := v.(*instance); ok && part.class.is(m.types["Module"]) {
		stateOf(part).join(x, name)
	}
	x.fields.set(m, name, v)
}

// join puts a module into another, the first time.
func (s *moduleState) join(parent *instance, name string) {
	if s.parent == nil {
		s.parent, s.name = parent, name
	}
}

// pathOf is the name of a module in named_modules().
func pathOf(x *instance) string {
	s := stateOf(x)
	if !s.known {
		s.known = true
		if s.parent != nil {
			s.path = strings.TrimPrefix(pathOf(s.parent)+"."+s.name, ".")
		}
	}
	return s.path
}

// callModule is module(…): its forward, counted as the module's.
func callModule(m *Machine, a *args) value {
	x := a.pos[0].(*instance)
	forward, own := x.fields.get("forward")
	if !own {
		if forward = x.class.lookup("forward"); forward == nil {
			panic(failure("%s has no forward that is known", x.class.name))
		}
	}
	outer := m.path
	f := m.enter(x)
	m.path = pathOf(x)
	if m.t.RunsAgain() && f != nil { // _call_impl has the arguments in a tuple
		given := slices.Concat(a.pos, a.named)
		f.Naming(func() []*torch.Tensor { return tensorsIn(given) })
	}
	out := m.invoke(forward, a)
	if f != nil {
		f.End()
	}
	m.path = outer
	return out
}

// enter says that a module runs, called by another; nil where that one does not have it.
func (m *Machine) enter(x *instance) *torch.Frame {
	s := stateOf(x)
	if !s.counted || s.caller != m.path {
		s.counted, s.caller, s.index = true, m.path, -1
		path := pathOf(x)
		if s.part = path; m.path != "" {
			within, ok := strings.CutPrefix(path, m.path+".")
			if s.part = within; !ok {
				s.part = ""
			}
		}
		if at := strings.LastIndexByte(s.part, '.'); at >= 0 && isIndex(s.part[at+1:]) {
			s.index, _ = strconv.Atoi(s.part[at+1:])
			s.part = s.part[:at]
		}
	}
	switch {
	case s.part == "":
		return nil
	case s.index >= 0:
		return m.t.Enter().In(s.part, s.index)
	}
	return m.t.Enter().In(s.part)
}

// partsOf are the modules that a module has, in their order.
func (m *Machine) partsOf(x *instance) []*instance {
	out := slices.Clone(stateOf(x).items)
	for _, v := range x.fields.values {
		if part, ok := v.(*instance); ok && part.class.is(m.types["Module"]) {
			out = append(out, part)
		}
	}
	return out
}

// walk visits a module and all that are in it, each once: children first, or itself.
func (m *Machine) walk(x *instance, childrenFirst bool, visit func(x *instance)) {
	seen := make(map[*instance]bool)
	var walk func(x *instance)
	walk = func(x *instance) {
		if seen[x] {
			return
		}
		seen[x] = true
		if !childrenFirst {
			visit(x)
		}
		for _, part := range m.partsOf(x) {
			walk(part)
		}
		if childrenFirst {
			visit(x)
		}
	}
	walk(x)
}

// isIndex reports whether a part of a path is a place in a list.
func isIndex(part string) bool { return part != "" && strings.Trim(part, "0123456789") == "" }

// at is the module at a path below another.
func (m *Machine) at(x *instance, path string) *instance {
	for _, name := range strings.Split(path, ".") {
		if i, _ := strconv.Atoi(name); isIndex(name) && i < len(stateOf(x).items) {
			x = stateOf(x).items[i]
			continue
		}
		part, _ := x.fields.get(name)
		next, ok := part.(*instance)
		if !ok {
			return nil
		}
		x = next
	}
	return x
}

// addModuleLists makes ModuleList, ModuleDict and Sequential.
func (m *Machine) addModuleLists() {
	module := m.types["Module"]
	list := newClass("ModuleList", module)
	m.types["ModuleList"] = list
	m.types["Sequential"] = newClass("Sequential", list)
	add := func(x *instance, v value) {
		s := stateOf(x)
		part := v.(*instance)
		stateOf(part).join(x, strconv.Itoa(len(s.items)))
		s.items = append(s.items, part)
	}
	extend := func(m *Machine, x *instance, v value) {
		for _, part := range m.listOf(v) {
			add(x, part)
		}
	}
	set := func(c *class, name string, f func(m *Machine, x *instance, a []value) value) {
		c.attrs[name] = &builtin{name, func(m *Machine, a *args) value { return f(m, a.pos[0].(*instance), a.pos[1:]) }}
	}
	set(list, "__init__", func(m *Machine, x *instance, a []value) value {
		if len(a) > 0 && a[0] != (none{}) {
			extend(m, x, a[0])
		}
		return none{}
	})
	set(m.types["Sequential"], "__init__", func(m *Machine, x *instance, a []value) value {
		for _, v := range a {
			add(x, hold(v))
		}
		return none{}
	})
	set(m.types["Sequential"], "forward", func(m *Machine, x *instance, a []value) value {
		v := hold(a[0])
		for _, part := range stateOf(x).items {
			v = m.call(part, v)
		}
		return v
	})
	set(list, "append", func(m *Machine, x *instance, a []value) value { add(x, hold(a[0])); return hold(x) })
	set(list, "extend", func(m *Machine, x *instance, a []value) value { extend(m, x, a[0]); return hold(x) })
	set(list, "__len__", func(_ *Machine, x *instance, _ []value) value { return int64(len(stateOf(x).items)) })
	set(list, "__iter__", func(_ *Machine, x *instance, _ []value) value { return newList(stateOf(x).all()...) })
	set(list, "__getitem__", func(m *Machine, x *instance, a []value) value {
		items := stateOf(x).all()
		defer m.dropAll(items)
		if s, ok := a[0].(*slice); ok {
			part := &instance{refs: refs{1}, class: x.class, native: &moduleState{}}
			for _, v := range sliced(items, s) {
				add(part, hold(v))
			}
			return part
		}
		return hold(items[place(a[0], len(items), "module list")])
	})
}

func (s *moduleState) all() []value {
	out := make([]value, len(s.items))
	for i, x := range s.items {
		out[i] = hold(x)
	}
	return out
}

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

// listParameters has the model list its parameters as Module.named_parameters does:
// a module's own before those of the modules in it, whenever they were made.
func (m *Machine) listParameters(model *instance) {
	var all []*torch.Tensor
	m.walk(model, false, func(x *instance) {
		for _, v := range x.fields.values {
			if p, ok := v.(*tensor); ok && p.parameter {
				all = append(all, p.x)
			}
		}
	})
	m.t.List(all)
}

// castBuffers is model.to(dtype) for buffers: parameters are in their type already.
func (m *Machine) castBuffers(model *instance, dtype torch.DType) {
	m.walk(model, false, func(x *instance) {
		for _, v := range x.fields.values {
			b, ok := v.(*tensor)
			if !ok || !b.buffer || !b.x.DType.IsFloat() {
				continue
			}
			m.t.As(trace.Parameter, func() {
				b.x, b.named = m.t.CastBuffer(torch.ValueOf(b.x), dtype).Tensor(), nil
			})
		}
	})
}
