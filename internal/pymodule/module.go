package pymodule

import (
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/models"
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
	claimed      bool // it owns its parameters
	input        bool // what it returns gets a gradient where inputs do (enable_input_require_grads)
	// What is the module's, if it is one of torch.nn.
	linear      *torch.Linear
	embedding   *torch.Embedding
	norm        *torch.LayerNorm
	conv        *torch.Conv1D
	convolution *torch.Conv
	stacks      []*torch.Stack               // parameters that are no layer's, which PEFT can adapt
	adapted     map[value]*torch.ActiveStack // those of them, while the module runs
	items       []*instance                  // of a list
	initialized bool
	evaluates   bool // eval() was called
}

func stateOf(x *instance) *moduleState { return x.native.(*moduleState) }

// addModules makes nn.Module and its kin.
func (m *Machine) addModules() {
	object := m.types["object"]
	module := newClass("Module", object)
	module.make = func(m *Machine, c *class, a *args) value {
		m.countModule()
		x := &instance{refs: refs{1}, class: c, native: &moduleState{}}
		m.initialize(x, a)
		return x
	}
	m.types["Module"] = module
	module.attrs["__init__"] = &builtin{"__init__", func(*Machine, *args) value { return none{} }}
	m.setsModules = &builtin{"__setattr__", func(m *Machine, a *args) value {
		setModuleAttribute(m, a.pos[0].(*instance), a.pos[1].(string), hold(a.pos[2]))
		return none{}
	}}
	module.attrs["__setattr__"] = m.setsModules
	module.attrs["__call__"] = &builtin{"__call__", callModule}
	module.attrs["training"] = &property{
		get: &builtin{"training", func(m *Machine, a *args) value { return m.trains(a.pos[0].(*instance)) }},
		set: &builtin{"training", func(_ *Machine, a *args) value {
			stateOf(a.pos[0].(*instance)).evaluates = a.pos[1] == false
			return none{}
		}},
	}
	methods := map[string]func(m *Machine, x *instance, a *args) value{
		"register_buffer": func(m *Machine, x *instance, a *args) value {
			if b, ok := a.need(1, "tensor").(*tensor); ok {
				b.buffer, b.passing = true, a.or(2, "persistent", true) == false
			}
			x.fields.set(m, a.pos[0].(string), hold(a.need(1, "tensor")))
			return none{}
		},
		"register_parameter": func(m *Machine, x *instance, a *args) value {
			x.fields.set(m, a.pos[0].(string), hold(a.pos[1]))
			return none{}
		},
		"requires_grad_": func(m *Machine, x *instance, a *args) value {
			m.walk(x, false, func(part *instance) {
				for _, v := range part.fields.values {
					if p, ok := v.(*tensor); ok && p.parameter {
						m.setTensorAttribute(p, "requires_grad", a.or(0, "requires_grad", true))
					}
				}
			})
			return hold(x)
		},
		"add_module": func(m *Machine, x *instance, a *args) value {
			if name := m.text(a.pos[0]); isIndex(name) && x.class.is(m.types["ModuleList"]) {
				return m.call(m.getattr(x, "append"), hold(a.pos[1]))
			}
			setModuleAttribute(m, x, a.pos[0].(string), hold(a.pos[1]))
			return none{}
		},
	}
	for name, f := range methods {
		module.attrs[name] = &builtin{name, func(m *Machine, a *args) value {
			return f(m, a.pos[0].(*instance), &args{a.pos[1:], a.names, a.named})
		}}
	}
	m.addModuleMethods(module)
	m.addModuleLists()
	m.addModuleDicts()
	m.addLayers()
}

// trains is the mode of a module.
func (m *Machine) trains(x *instance) bool { return m.training && !stateOf(x).evaluates }

// setMode is train(mode) of a module and those in it, which may have their own.
func (m *Machine) setMode(x *instance, mode bool) {
	m.drop(m.callMethod(x, "train", mode))
}

func setModuleAttribute(m *Machine, x *instance, name string, v value) {
	if part, ok := v.(*instance); ok && part.isModule() {
		stateOf(part).join(x, name)
	}
	if old, ok := x.fields.get(name); ok && !same(old, v) {
		m.replaceOwn(x, name, old, v)
	}
	x.fields.set(m, name, v)
}

// replaceOwn is module.name = v in the place of something else: of a parameter that a
// layer of package torch has too, or of a module with such layers.
func (m *Machine) replaceOwn(x *instance, name string, old, v value) {
	switch old := old.(type) {
	case none:
		if s := stateOf(x); s.linear != nil && name == "bias" && isParameter(v) {
			m.t.ShareBias(s.linear, v.(*tensor).x)
		}
	case *instance:
		if old.class.is(m.types["Module"]) {
			m.discardAll(old, make(map[*instance]bool))
		}
	case *tensor:
		s := stateOf(x)
		switch {
		case !old.parameter || !s.isLayer():
		case s.norm != nil && name == "bias" && v == (none{}):
			m.t.Discard(old.x)
			s.norm.Bias = nil
		case s.linear != nil && name == "bias" && isParameter(v):
			m.t.ShareBias(s.linear, v.(*tensor).x)
		case name == "weight" && isParameter(v) && slices.Equal(v.(*tensor).x.Shape, old.x.Shape):
			m.shareWeight(s, v.(*tensor).x)
		default:
			panic(failure("setting the %s of a %s is not known", name, x.class.name))
		}
	}
}

// shareWeight gives a layer of package torch the weight of another.
func (m *Machine) shareWeight(s *moduleState, weight *torch.Tensor) {
	switch {
	case s.linear != nil:
		m.t.ShareWeight(&s.linear.Weight, weight)
	case s.embedding != nil:
		m.t.ShareWeight(&s.embedding.Weight, weight)
	case s.conv != nil:
		m.t.ShareWeight(&s.conv.Weight, weight)
	default:
		m.t.ShareWeight(&s.norm.Weight, weight)
	}
}

func isParameter(v value) bool {
	x, ok := v.(*tensor)
	return ok && x.parameter
}

// discardAll takes the parameters of a module that goes, and of those in it that nothing
// else has.
func (m *Machine) discardAll(x *instance, seen map[*instance]bool) {
	if x.n != 1 || seen[x] {
		return
	}
	seen[x] = true
	for _, v := range x.fields.values {
		if p, ok := v.(*tensor); ok && p.parameter && p.n == 1 {
			m.t.Discard(p.x)
		}
	}
	for _, part := range m.partsOf(x) {
		m.discardAll(part, seen)
	}
}

// isLayer reports whether package torch has the parameters of a module too.
func (s *moduleState) isLayer() bool {
	return s.linear != nil || s.embedding != nil || s.norm != nil || s.conv != nil
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
	leave := m.activate(x)
	f := m.enter(x)
	m.path = pathOf(x)
	if s := stateOf(x); !s.claimed {
		s.claimed = true
		for _, v := range x.fields.values {
			if p, ok := v.(*tensor); ok && p.parameter {
				m.t.Claim(p.x)
			}
		}
	}
	if m.t.RunsAgain() && f != nil { // _call_impl has the arguments in a tuple
		given := slices.Concat(a.pos, a.named)
		f.Naming(func() []*torch.Tensor { return tensorsIn(given) })
	}
	out := m.invoke(forward, a)
	if m.recordings != nil {
		m.record(x, out)
	}
	if y, ok := out.(*tensor); ok && m.t.InputsRequireGrad && stateOf(x).input {
		y.x.RequireGrad()
	}
	if f != nil {
		f.End(m.outputsOf(out)...)
	}
	leave()
	m.path = outer
	return out
}

// activate wraps the adapters of its parameters around a module (ParamWrapper.forward),
// the last one first.
func (m *Machine) activate(x *instance) (leave func()) {
	s := stateOf(x)
	if len(s.stacks) == 0 || !slices.ContainsFunc(s.stacks, (*torch.Stack).Adapted) {
		return func() {}
	}
	s.adapted = make(map[value]*torch.ActiveStack)
	var active []*torch.ActiveStack
	for _, stack := range slices.Backward(s.stacks) {
		if stack.Adapted() {
			a := m.t.Activate(stack)
			active = append(active, a)
			s.adapted[stack.Weight] = a
		}
	}
	return func() {
		s.adapted = nil
		for _, a := range slices.Backward(active) {
			a.Leave()
		}
	}
}

// field is an attribute of an object; a parameter comes with its adapter.
func (m *Machine) field(x *instance, v value) value {
	if s, ok := x.native.(*moduleState); ok && s.adapted != nil {
		if p, ok := v.(*tensor); ok && s.adapted[p.x] != nil {
			return &tensor{refs: refs{1}, x: m.t.Hold(s.adapted[p.x].Weight()).Tensor()}
		}
	}
	return hold(v)
}

// outputsOf are the tensors that a module returns, which matter to ranks alone.
func (m *Machine) outputsOf(out value) []*torch.Tensor {
	if m.t.Alone() {
		return nil
	}
	return tensorsIn([]value{out})
}

// enter says that a module runs, called by another; nil where that one does not have it.
func (m *Machine) enter(x *instance) *torch.Frame {
	s := stateOf(x)
	if !s.counted || s.caller != m.path {
		s.counted, s.caller, s.index = true, m.path, -1
		path := pathOf(x)
		within, ok := strings.CutPrefix(path, m.path+".")
		switch {
		case path == "" && x != m.model: // made and called by a function, as CrossEntropyLoss
			s.part = x.class.name
		case m.path == "" || ok:
			s.part = strings.TrimPrefix(within, ".")
		default:
			s.part = ""
		}
		if at := strings.LastIndexByte(s.part, '.'); at >= 0 && isIndex(s.part[at+1:]) {
			s.index, _ = strconv.Atoi(s.part[at+1:])
			s.part = s.part[:at]
		}
	}
	switch {
	case x == m.model:
		return m.t.Enter().InModel(x.class.name)
	case s.part == "":
		return nil
	case s.index >= 0:
		return m.t.Enter().In(s.part, s.index)
	}
	return m.t.Enter().In(s.part)
}

// partsOf are the modules that a module has, in their order.
func (m *Machine) partsOf(x *instance) (out []*instance) {
	m.eachModule(x, func(part *instance) { out = append(out, part) })
	return out
}

func (m *Machine) eachModule(x *instance, visit func(part *instance)) {
	for _, part := range stateOf(x).items {
		visit(part)
	}
	for _, v := range x.fields.values {
		if part, ok := v.(*instance); ok && part.isModule() {
			visit(part)
		}
	}
}

// isModule reports whether an object is an nn.Module.
func (x *instance) isModule() bool {
	_, ok := x.native.(*moduleState)
	return ok
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
		m.eachModule(x, walk)
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
	set(list, "__iter__", func(m *Machine, x *instance, _ []value) value { return newList(m.itemsIn(x)...) })
	set(list, "__getitem__", func(m *Machine, x *instance, a []value) value {
		items := m.itemsIn(x)
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

// itemsIn are the modules of a list.
func (m *Machine) itemsIn(x *instance) []value {
	s := stateOf(x)
	m.spend(int64(len(s.items)) / lookupsAWork)
	out := make([]value, len(s.items))
	for i, x := range s.items {
		out[i] = hold(x)
	}
	return out
}

// listParameters has the model list its parameters as Module.named_parameters does:
// a module's own before those of the modules in it, whenever they were made.
func (m *Machine) listParameters(model *instance) {
	var all []*torch.Tensor
	decayed := make(map[*torch.Tensor]bool)
	m.walk(model, false, func(x *instance) {
		m.nameParameters(x)
		for i, v := range x.fields.values {
			if p, ok := v.(*tensor); ok && p.parameter {
				all = append(all, p.x)
				name := strings.ToLower(pathOf(x) + "." + x.fields.names[i])
				decayed[p.x] = decayed[p.x] || !m.isNorm(x) && m.isDecayed(name)
			}
		}
	})
	if len(m.library.own) > 0 {
		m.t.KeepOnly(all)
	}
	for _, p := range all {
		if decayed[p] != (len(p.Shape) > 1) {
			p.OddDecay()
		}
	}
	m.t.List(all)
}

// nameParameters says what the parameters of a module are called. Those of several
// dimensions that are no layer's are matrices that PEFT can adapt; what it was made of
// before transformers 5 decides over the rank
// (peft/utils/transformers_weight_conversion.py).
func (m *Machine) nameParameters(x *instance) {
	s := stateOf(x)
	for i, v := range x.fields.values {
		p, ok := v.(*tensor)
		if !ok || !p.parameter {
			continue
		}
		name := x.fields.names[i]
		p.x.Named(name)
		if s.isLayer() || len(p.x.Shape) < 2 {
			continue
		}
		stack := m.t.AsStack(p.x, belowLayers(pathOf(x)+"."+name))
		if name == "gate_up_proj" {
			stack.Fused(2)
		}
		for _, earlier := range s.stacks {
			earlier.Before(stack)
		}
		s.stacks = append(s.stacks, stack)
	}
}

// isDecayed reports whether Hugging Face's Trainer decays a parameter of that name
// (transformers/trainer.py, get_decay_parameter_names).
func (m *Machine) isDecayed(name string) bool {
	parts := []string{"bias", "layernorm", "rmsnorm", ".norm.", "_norm."}
	if m.library.before(4, 57) {
		parts = parts[:3]
	}
	name = "." + name + "."
	return !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
}

// isNorm reports whether it decays nothing of a module. Before 4.57 modules of models add
// classes of theirs.
func (m *Machine) isNorm(x *instance) bool {
	if m.library.before(4, 57) {
		kinds, _ := m.source("transformers.pytorch_utils").names["ALL_LAYERNORM_LAYERS"].(*list)
		return kinds != nil && slices.ContainsFunc(kinds.items, func(k value) bool { return x.class == k })
	}
	return x.class.is(m.types["LayerNorm"])
}

// toCard is model.to("cuda"): of what constructors made on the CPU. Module._apply visits
// the modules within one first, then its parameters, then its buffers.
func (m *Machine) toCard(model *instance) {
	m.walk(model, true, func(x *instance) {
		for _, isIt := range []func(p *tensor) bool{func(p *tensor) bool { return p.parameter }, func(p *tensor) bool { return p.buffer }} {
			for _, v := range x.fields.values {
				if p, ok := v.(*tensor); ok && p.host && isIt(p) {
					p.host, p.values = false, nil
					m.t.As(trace.Parameter, func() { m.t.ToCard(p.x) })
				}
			}
		}
	})
}

// castBuffer casts a buffer of floats. Another attribute that is the same tensor stays what
// it is.
func (m *Machine) castBuffer(x *instance, field int, p *tensor, r models.Run) *tensor {
	dtype := r.BufferDType()
	if p.passing { // and so not loaded
		dtype = r.DType
	}
	if !p.x.DType.IsFloat() && p.x.DType != torch.Complex64 || p.x.DType == dtype { // complex numbers lose their imaginary part
		return p
	}
	if p.n > 1 {
		p.n--
		own := *p
		own.refs, p.buffer = refs{1}, false
		own.x = m.t.Hold(torch.Borrow(p.x)).Tensor()
		x.fields.values[field] = &own
		p = &own
	}
	m.keep(p, func() { p.x, p.named = m.t.CastBuffer(torch.ValueOf(p.x), dtype).Tensor(), nil })
	return p
}

// keep makes memory of a model where a tensor of it is.
func (m *Machine) keep(p *tensor, f func()) {
	if p.host {
		m.t.OnCPU(f)
		return
	}
	m.t.As(trace.Parameter, f)
}

// cast is model.to(dtype): most parameters are in that type already. Module._apply visits
// the modules within one first, then its parameters, then its buffers.
func (m *Machine) cast(model *instance, r models.Run) {
	var all []*torch.Tensor
	m.walk(model, true, func(x *instance) {
		var buffers []*torch.Tensor
		for i, v := range x.fields.values {
			p, ok := v.(*tensor)
			switch {
			case !ok:
			case p.buffer:
				buffers = append(buffers, m.castBuffer(x, i, p, r).x)
			case p.parameter:
				if p.x.DType.IsFloat() && p.x.DType != r.DType {
					m.keep(p, func() { m.t.CastParameter(p.x, r.DType) })
				}
				all = append(all, p.x)
			}
		}
		all = append(all, buffers...)
	})
	m.t.ListOnHost(all)
}
