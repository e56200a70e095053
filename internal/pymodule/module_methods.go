package pymodule

import (
	"slices"
	"strconv"
	"strings"

	"memorymark/internal/models"
	"memorymark/internal/torch"
)

// This file holds methods of nn.Module, and modules that hold others by name.

func (m *Machine) addModuleMethods(module *class) {
	set := func(name string, f func(m *Machine, x *instance, a *args) value) {
		module.attrs[name] = &builtin{name, func(m *Machine, a *args) value { return f(m, a.pos[0].(*instance), &args{a.pos[1:], a.names, a.named}) }}
	}
	named := func(x *instance) []*instance { return m.partsOf(x) }
	set("children", func(_ *Machine, x *instance, _ *args) value {
		l := newList()
		for _, part := range named(x) {
			l.items = append(l.items, hold(part))
		}
		return l
	})
	set("named_children", func(m *Machine, x *instance, _ *args) value {
		l := newList()
		m.eachPart(x, func(name string, part *instance) { l.items = append(l.items, newTuple(name, hold(part))) })
		return l
	})
	set("modules", func(m *Machine, x *instance, _ *args) value {
		l := newList()
		m.walk(x, false, func(part *instance) { l.items = append(l.items, hold(part)) })
		return l
	})
	set("named_modules", func(m *Machine, x *instance, _ *args) value {
		l := newList()
		m.eachBelow(x, "", func(path string, part *instance) { l.items = append(l.items, newTuple(path, hold(part))) })
		return l
	})
	set("named_parameters", func(m *Machine, x *instance, _ *args) value {
		l := newList()
		m.eachBelow(x, "", func(path string, part *instance) {
			for i, v := range part.fields.values {
				if p, ok := v.(*tensor); ok && p.parameter {
					l.items = append(l.items, newTuple(joined(path, part.fields.names[i]), hold(p)))
				}
			}
		})
		return l
	})
	tensors := func(which func(p *tensor) bool) func(m *Machine, x *instance, a *args) value {
		return func(m *Machine, x *instance, _ *args) value {
			l := newList()
			m.walk(x, false, func(part *instance) {
				for _, v := range part.fields.values {
					if p, ok := v.(*tensor); ok && which(p) {
						l.items = append(l.items, hold(p))
					}
				}
			})
			return l
		}
	}
	set("parameters", tensors(func(p *tensor) bool { return p.parameter }))
	set("buffers", tensors(func(p *tensor) bool { return p.buffer }))
	set("apply", func(m *Machine, x *instance, a *args) value {
		m.walk(x, true, func(part *instance) { m.drop(m.call(a.pos[0], hold(part))) })
		return hold(x)
	})
	set("train", func(m *Machine, x *instance, a *args) value {
		if m.building { // what builds a model sets its mode then
			return hold(x)
		}
		mode := a.or(0, "mode", true)
		stateOf(x).evaluates = !m.truth(mode)
		for _, part := range m.partsOf(x) {
			m.setMode(part, m.truth(mode))
		}
		return hold(x)
	})
	set("eval", func(m *Machine, x *instance, _ *args) value { return m.callMethod(x, "train", false) })
	set("to", func(m *Machine, x *instance, a *args) value {
		return m.convert(x, append(slices.Clone(a.pos), a.named...)...)
	})
	set("cuda", func(m *Machine, x *instance, _ *args) value { return m.convert(x, device{}) })
	set("cpu", func(m *Machine, x *instance, _ *args) value { return m.convert(x, device{cpu: true}) })
	for name, d := range map[string]torch.DType{"float": torch.Float32, "half": torch.Float16, "bfloat16": torch.BFloat16} {
		set(name, func(m *Machine, x *instance, _ *args) value { return m.convert(x, dtype(d)) })
	}
	set("get_submodule", func(m *Machine, x *instance, a *args) value {
		if part := m.at(x, m.text(a.pos[0])); part != nil {
			return hold(part)
		}
		panic(raise("AttributeError", "%s has no attribute `%s`", x.class.name, m.text(a.pos[0])))
	})
	for _, name := range []string{"register_forward_hook", "register_forward_pre_hook", "register_load_state_dict_pre_hook", "register_state_dict_pre_hook", "_register_load_state_dict_pre_hook"} {
		set(name, func(*Machine, *instance, *args) value {
			if name[:16] == "register_forward" {
				panic(failure("%s is not known", name))
			}
			return none{}
		})
	}
}

// convert is module.to() of devices and types, once a program has made the module. What builds a
// model of transformers places and casts it as a whole.
func (m *Machine) convert(x *instance, to ...value) value {
	if m.building {
		return hold(x)
	}
	for _, v := range to {
		name, isText := v.(string)
		d, isDevice := v.(device)
		kind, isType := v.(dtype)
		switch {
		case isText && strings.HasPrefix(name, "cuda"), isDevice && !d.cpu:
			m.toCard(x)
		case isType && torch.DType(kind).IsFloat():
			m.cast(x, models.Run{DType: torch.DType(kind)})
		case v == (none{}), v == true, v == false:
		case (name == "cpu" || isDevice) && m.onHost(x):
		default:
			panic(failure("to(%s) of a module is not known", m.repr(v)))
		}
	}
	return hold(x)
}

// onHost reports whether all parameters of a module are on the CPU.
func (m *Machine) onHost(x *instance) bool {
	host := true
	m.walk(x, false, func(part *instance) {
		for _, v := range part.fields.values {
			if p, ok := v.(*tensor); ok && p.parameter {
				host = host && p.host
			}
		}
	})
	return host
}

func joined(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// eachPart visits the modules that a module has, with their names.
func (m *Machine) eachPart(x *instance, visit func(name string, part *instance)) {
	for i, part := range stateOf(x).items {
		visit(strconv.Itoa(i), part)
	}
	for i, v := range x.fields.values {
		if part, ok := v.(*instance); ok && part.class.is(m.types["Module"]) {
			visit(x.fields.names[i], part)
		}
	}
}

// eachBelow visits a module and those in it, each once, with their paths.
func (m *Machine) eachBelow(x *instance, path string, visit func(path string, part *instance)) {
	seen := make(map[*instance]bool)
	var walk func(path string, x *instance)
	walk = func(path string, x *instance) {
		if seen[x] {
			return
		}
		seen[x] = true
		visit(path, x)
		m.eachPart(x, func(name string, part *instance) { walk(joined(path, name), part) })
	}
	walk(path, x)
}

// addModuleDicts makes ModuleDict and ParameterList.
func (m *Machine) addModuleDicts() {
	dict := newClass("ModuleDict", m.types["Module"])
	m.types["ModuleDict"] = dict
	set := func(c *class, name string, f func(m *Machine, x *instance, a []value) value) {
		c.attrs[name] = &builtin{name, func(m *Machine, a *args) value { return f(m, a.pos[0].(*instance), a.pos[1:]) }}
	}
	update := func(m *Machine, x *instance, a []value) value {
		if len(a) == 0 || a[0] == (none{}) {
			return none{}
		}
		if from, ok := a[0].(*list); ok {
			for _, pair := range from.items {
				kv := pair.(*tuple).items
				setModuleAttribute(m, x, m.text(kv[0]), hold(kv[1]))
			}
			return none{}
		}
		from := m.itemsOf(a[0])
		for i, k := range from.keys {
			setModuleAttribute(m, x, m.text(k), hold(from.values[i]))
		}
		return none{}
	}
	all := func(x *instance) (names, parts []value) {
		for i, v := range x.fields.values {
			if part, ok := v.(*instance); ok && part.class.is(m.types["Module"]) {
				names, parts = append(names, x.fields.names[i]), append(parts, hold(part))
			}
		}
		return names, parts
	}
	set(dict, "__init__", update)
	set(dict, "update", update)
	set(dict, "__getitem__", func(m *Machine, x *instance, a []value) value {
		if v, ok := x.fields.get(m.text(a[0])); ok {
			return hold(v)
		}
		panic(raise("KeyError", "%s", m.repr(a[0])))
	})
	set(dict, "__setitem__", func(m *Machine, x *instance, a []value) value {
		setModuleAttribute(m, x, m.text(a[0]), hold(a[1]))
		return none{}
	})
	set(dict, "__contains__", func(m *Machine, x *instance, a []value) value {
		_, ok := x.fields.get(m.text(a[0]))
		return ok
	})
	set(dict, "__len__", func(_ *Machine, x *instance, _ []value) value { names, _ := all(x); return int64(len(names)) })
	for _, name := range []string{"keys", "__iter__"} {
		set(dict, name, func(_ *Machine, x *instance, _ []value) value { names, _ := all(x); return newList(names...) })
	}
	set(dict, "values", func(_ *Machine, x *instance, _ []value) value { _, parts := all(x); return newList(parts...) })
	set(dict, "items", func(_ *Machine, x *instance, _ []value) value {
		l := newList()
		names, parts := all(x)
		for i := range names {
			l.items = append(l.items, newTuple(names[i], parts[i]))
		}
		return l
	})
	m.addParameterLists(set)
}

func (m *Machine) addParameterLists(set func(c *class, name string, f func(m *Machine, x *instance, a []value) value)) {
	list := newClass("ParameterList", m.types["Module"])
	m.types["ParameterList"] = list
	add := func(m *Machine, x *instance, v value) {
		p := v.(*tensor)
		if !p.parameter {
			p = &tensor{refs: refs{1}, x: m.t.Adopt(m.t.Detach(in(p))), parameter: true}
		}
		x.fields.set(m, strconv.Itoa(len(x.fields.names)), p)
	}
	set(list, "__init__", func(m *Machine, x *instance, a []value) value {
		if len(a) > 0 && a[0] != (none{}) {
			for _, v := range m.listOf(a[0]) {
				add(m, x, v)
			}
		}
		return none{}
	})
	set(list, "append", func(m *Machine, x *instance, a []value) value { add(m, x, hold(a[0])); return hold(x) })
	set(list, "__len__", func(_ *Machine, x *instance, _ []value) value { return int64(len(x.fields.values)) })
	set(list, "__iter__", func(_ *Machine, x *instance, _ []value) value { return newList(holdAll(x.fields.values)...) })
	set(list, "__getitem__", func(m *Machine, x *instance, a []value) value {
		return hold(x.fields.values[place(a[0], len(x.fields.values), "parameter list")])
	})
	set(m.types["ModuleList"], "insert", func(m *Machine, x *instance, a []value) value {
		s := stateOf(x)
		if integer(a[0]) != int64(len(s.items)) {
			panic(failure("insert into a module list is not known"))
		}
		part := hold(a[1]).(*instance)
		stateOf(part).join(x, strconv.Itoa(len(s.items)))
		s.items = append(s.items, part)
		return none{}
	})
}
