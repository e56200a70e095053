package pymodule

import (
	"slices"
	"strings"
)

// addOutputs makes ModelOutput and other interfaces of transformers.
func (m *Machine) addOutputs() {
	output := newClass("ModelOutput", m.types["OrderedDict"])
	m.types["ModelOutput"] = output
	output.make = func(m *Machine, c *class, a *args) value {
		x := &instance{refs: refs{1}, class: c, items: newDict()}
		m.fillFields(x, a)
		for i, name := range x.fields.names {
			if v := x.fields.values[i]; v != (none{}) {
				x.items.set(m, name, hold(v))
			}
		}
		return x
	}
	output.attrs["__setattr__"] = &builtin{"__setattr__", func(m *Machine, a *args) value {
		x, name := a.pos[0].(*instance), a.pos[1].(string)
		if a.pos[2] != (none{}) {
			x.items.set(m, name, hold(a.pos[2]))
		}
		x.fields.set(m, name, hold(a.pos[2]))
		return none{}
	}}
	toTuple := func(_ *Machine, a *args) value { return newTuple(holdAll(a.pos[0].(*instance).items.values)...) }
	output.attrs["to_tuple"] = &builtin{"to_tuple", toTuple}
	output.attrs["__getitem__"] = &builtin{"__getitem__", func(m *Machine, a *args) value {
		if name, ok := a.pos[1].(string); ok {
			return m.item(a.pos[0].(*instance).items, name)
		}
		all := toTuple(m, a)
		defer m.drop(all)
		return m.item(all, a.pos[1])
	}}
	m.types["OutputRecorder"] = newClass("OutputRecorder", m.types["object"])
	m.types["OutputRecorder"].make = func(m *Machine, c *class, a *args) value {
		x := &instance{refs: refs{1}, class: c}
		x.fields.set(m, "target_class", hold(a.need(0, "target_class")))
		x.fields.set(m, "index", a.or(1, "index", int64(0)))
		for _, name := range []string{"layer_name", "class_name"} {
			if v := a.get(-1, name); v != nil && v != (none{}) {
				x.fields.set(m, name, hold(v))
			}
		}
		return x
	}
	m.addInterfaces()
}

// fillFields is the __init__ that @dataclass writes.
func (m *Machine) fillFields(x *instance, a *args) {
	var names []string
	for _, k := range slices.Backward(x.class.mro) {
		for _, f := range k.fields {
			if !slices.Contains(names, f) {
				names = append(names, f)
			}
		}
	}
	for i, name := range names {
		v := a.get(i, name)
		if v == nil {
			v = x.class.lookup(name)
		}
		if v == nil {
			panic(raise("TypeError", "__init__() missing 1 required argument: '%s'", name))
		}
		x.fields.set(m, name, hold(v))
	}
	for _, name := range a.names {
		if !slices.Contains(names, name) {
			panic(raise("TypeError", "__init__() got an unexpected keyword argument '%s'", name))
		}
	}
}

func dataclassesName(_ *Machine, _, name string) value {
	if name != "dataclass" {
		return nil
	}
	made := &builtin{name, func(m *Machine, a *args) value {
		c := a.pos[0].(*class)
		if c.make == nil {
			c.make = func(m *Machine, c *class, a *args) value {
				x := &instance{refs: refs{1}, class: c}
				m.fillFields(x, a)
				if f := c.lookup("__post_init__"); f != nil {
					m.drop(m.call(f, hold(x)))
				}
				return x
			}
		}
		return c
	}}
	return &builtin{name, func(m *Machine, a *args) value {
		if len(a.pos) == 1 {
			return made.call(m, a)
		}
		return made
	}}
}

// addInterfaces makes the mappings from names to functions.
func (m *Machine) addInterfaces() {
	general := newClass("GeneralInterface", m.types["object"])
	m.types["GeneralInterface"] = general
	mapping := func(a *args) *dict { return a.pos[0].(*instance).class.lookup("_global_mapping").(*dict) }
	for _, name := range []string{"__getitem__", "__contains__", "get", "get_interface"} {
		general.attrs[name] = &builtin{name, func(m *Machine, a *args) value {
			if name == "__contains__" {
				return mapping(a).find(a.pos[1]) >= 0
			}
			if strings.HasPrefix(name, "get") {
				return dictMethods["get"].call(m, &args{pos: append([]value{mapping(a)}, a.pos[1:]...)})
			}
			return m.item(mapping(a), a.pos[1])
		}}
	}
	attention := newClass("AttentionInterface", general)
	m.types["AttentionInterface"] = attention
	for _, name := range []string{"get_interface", "__getitem__"} {
		attention.attrs[name] = &builtin{name, func(m *Machine, a *args) value {
			switch a.pos[1] {
			case "eager":
				return hold(a.need(2, "default"))
			case "sdpa":
				return hold(m.resolveImport(&lazyImport{"transformers.integrations.sdpa_attention", "sdpa_attention_forward"}))
			}
			panic(failure("attention of %s is not known", m.repr(a.pos[1])))
		}}
	}
}
