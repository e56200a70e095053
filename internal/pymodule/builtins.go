package pymodule

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

var exceptions = []string{ // each derived from the one before, or from Exception
	"BaseException", "Exception", "ArithmeticError", "AssertionError", "AttributeError", "ImportError", "IndexError", "KeyError", "NameError",
	"NotImplementedError", "OverflowError", "RuntimeError", "StopIteration", "TypeError", "UnboundLocalError", "ValueError", "Warning",
	"FutureWarning", "UserWarning", "DeprecationWarning", "ZeroDivisionError", "RecursionError",
}

// addTypes makes the classes that Python has.
func (m *Machine) addTypes() {
	object := newClass("object")
	m.types["object"] = object
	for _, name := range []string{"__init__", "__init_subclass__"} {
		object.attrs[name] = &builtin{name, func(*Machine, *args) value { return none{} }}
	}
	for _, name := range []string{"int", "float", "str", "tuple", "list", "dict", "set", "type", "NoneType", "function", "slice", "range", "module", "method", "ellipsis", "dtype"} {
		m.types[name] = newClass(name, object)
	}
	m.types["bool"] = newClass("bool", m.types["int"])
	m.types["OrderedDict"] = newClass("OrderedDict", m.types["dict"])
	m.types["BaseException"] = newClass("BaseException", object)
	for _, name := range exceptions[1:] {
		base := m.types["Exception"]
		if name == "Exception" {
			base = m.types["BaseException"]
		}
		m.types[name] = newClass(name, base)
	}
	for _, name := range exceptions {
		m.types[name].make = func(m *Machine, c *class, a *args) value {
			x := &instance{refs: refs{1}, class: c}
			x.fields.set(m, "args", newTuple(holdAll(a.pos)...))
			m.initialize(x, a)
			return x
		}
	}
	m.addConstructors()
	m.types["dict"].attrs["fromkeys"] = &builtin{"fromkeys", func(m *Machine, a *args) value {
		d, v := newDict(), value(none{})
		if len(a.pos) > 1 {
			v = a.pos[1]
		}
		for _, k := range m.listOf(a.pos[0]) {
			d.set(m, k, hold(v))
		}
		return d
	}}
	m.addAbstract()
}

// addConstructors says what calling a class of Python's makes.
func (m *Machine) addConstructors() {
	makes := func(name string, f func(m *Machine, a *args) value) {
		m.types[name].make = func(m *Machine, c *class, a *args) value {
			if c != m.types[name] && slices.Contains([]string{"dict", "OrderedDict"}, name) {
				x := &instance{refs: refs{1}, class: c, items: newDict()}
				if c.lookup("__init__") != nil {
					m.initialize(x, a)
				} else {
					m.drop(dictMethods["update"].call(m, &args{append([]value{x}, a.pos...), a.names, a.named}))
				}
				return x
			}
			if c != m.types[name] {
				panic(failure("an object of %s, a class derived from %s", c.name, name))
			}
			return f(m, a)
		}
	}
	makes("int", func(m *Machine, a *args) value {
		switch v := a.pos[0].(type) {
		case float64:
			return int64(v)
		case string:
			n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			if err != nil {
				panic(raise("ValueError", "invalid literal for int() with base 10: %s", quote(v)))
			}
			return n
		}
		return integer(a.pos[0])
	})
	makes("float", func(m *Machine, a *args) value {
		if s, ok := a.pos[0].(string); ok {
			return parseFloat(s)
		}
		return number(a.pos[0])
	})
	makes("bool", func(m *Machine, a *args) value { return m.truth(a.pos[0]) })
	makes("str", func(m *Machine, a *args) value { return m.text(a.pos[0]) })
	makes("tuple", func(m *Machine, a *args) value {
		if len(a.pos) == 0 {
			return newTuple()
		}
		return newTuple(m.listOf(a.pos[0])...)
	})
	makes("list", func(m *Machine, a *args) value {
		if len(a.pos) == 0 {
			return newList()
		}
		return newList(m.listOf(a.pos[0])...)
	})
	makes("set", func(m *Machine, a *args) value {
		if len(a.pos) == 0 {
			return m.newSet(nil)
		}
		return m.newSet(m.listOf(a.pos[0]))
	})
	for _, name := range []string{"dict", "OrderedDict"} {
		makes(name, func(m *Machine, a *args) value {
			d := newDict()
			if len(a.pos) > 0 {
				if x, ok := a.pos[0].(*list); ok {
					for _, pair := range x.items {
						kv := m.listOf(pair)
						d.set(m, kv[0], kv[1])
					}
					a = &args{nil, a.names, a.named}
				}
			}
			m.drop(dictMethods["update"].call(m, &args{append([]value{d}, a.pos...), a.names, a.named}))
			return d
		})
	}
	makes("range", func(m *Machine, a *args) value {
		s := &span{step: 1, to: integer(a.pos[0])}
		if len(a.pos) > 1 {
			s.from, s.to = s.to, integer(a.pos[1])
		}
		if len(a.pos) > 2 {
			s.step = integer(a.pos[2])
		}
		return s
	})
	makes("slice", func(m *Machine, a *args) value {
		switch len(a.pos) {
		case 1:
			return &slice{none{}, a.pos[0], none{}}
		case 2:
			return &slice{a.pos[0], a.pos[1], none{}}
		}
		return &slice{a.pos[0], a.pos[1], a.pos[2]}
	})
	makes("type", func(m *Machine, a *args) value {
		if c := m.classOf(a.pos[0]); c != nil {
			return c
		}
		panic(failure("type of a %s", typeName(a.pos[0])))
	})
}

// pythonBuiltins are the functions that Python has.
func (m *Machine) pythonBuiltins() map[string]value {
	out := make(map[string]value)
	for name, c := range m.types {
		out[name] = c
	}
	out["NotImplemented"], out["__debug__"] = &unknown{"NotImplemented"}, true
	add := func(name string, call func(m *Machine, a *args) value) { out[name] = &builtin{name, call} }
	addNumbers(add)
	addLookups(add)
	addIterations(add)
	out["property"] = &builtin{"property", func(_ *Machine, a *args) value { return &property{get: hold(a.pos[0])} }}
	out["staticmethod"] = &builtin{"staticmethod", func(_ *Machine, a *args) value { return &staticMethod{hold(a.pos[0])} }}
	out["classmethod"] = &builtin{"classmethod", func(_ *Machine, a *args) value { return &classMethod{hold(a.pos[0])} }}
	add("print", func(*Machine, *args) value { return none{} })
	add("super", func(m *Machine, a *args) value {
		k := m.classOf(a.pos[1])
		return &bases{a.pos[1], k.mro[slices.Index(k.mro, a.pos[0].(*class))+1:]}
	})
	return out
}

func (p *property) attribute(_ *Machine, name string) value {
	switch name {
	case "setter":
		return &builtin{"setter", func(_ *Machine, a *args) value { return &property{p.get, hold(a.pos[0])} }}
	case "fget":
		return hold(p.get)
	}
	return nil
}

func addNumbers(add func(string, func(*Machine, *args) value)) {
	add("abs", func(m *Machine, a *args) value {
		switch v := a.pos[0].(type) {
		case *tensor:
			return m.plain(v.x.DType, v)
		case float64:
			return math.Abs(v)
		}
		return max(integer(a.pos[0]), -integer(a.pos[0]))
	})
	extreme := func(op string) func(m *Machine, a *args) value {
		return func(m *Machine, a *args) value {
			items := a.pos
			if len(items) == 1 {
				items = m.listOf(items[0])
			}
			if len(items) == 0 {
				if d := a.get(-1, "default"); d != nil {
					return hold(d)
				}
				panic(raise("ValueError", "arg is an empty sequence"))
			}
			best := items[0]
			for _, v := range items[1:] {
				if m.truth(m.compare(op, v, best)) {
					best = v
				}
			}
			return hold(best)
		}
	}
	add("min", extreme("Lt"))
	add("max", extreme("Gt"))
	add("sum", func(m *Machine, a *args) value {
		var out value = int64(0)
		if len(a.pos) > 1 {
			out = hold(a.pos[1])
		}
		for _, v := range m.listOf(a.pos[0]) {
			next := m.binary("Add", out, v)
			m.drop(out)
			m.drop(v)
			out = next
		}
		return out
	})
	add("round", func(m *Machine, a *args) value {
		if len(a.pos) == 1 {
			return int64(math.RoundToEven(number(a.pos[0])))
		}
		scale := math.Pow(10, number(a.pos[1]))
		return math.RoundToEven(number(a.pos[0])*scale) / scale
	})
	add("divmod", func(m *Machine, a *args) value {
		return newTuple(m.binary("FloorDiv", a.pos[0], a.pos[1]), m.binary("Mod", a.pos[0], a.pos[1]))
	})
}

func addLookups(add func(string, func(*Machine, *args) value)) {
	add("len", func(m *Machine, a *args) value { return m.length(a.pos[0]) })
	add("isinstance", func(m *Machine, a *args) value { return m.isInstance(a.pos[0], a.pos[1]) })
	add("issubclass", func(m *Machine, a *args) value {
		kinds := []value{a.pos[1]}
		if t, ok := a.pos[1].(*tuple); ok {
			kinds = t.items
		}
		return slices.ContainsFunc(kinds, func(k value) bool { return a.pos[0].(*class).is(k.(*class)) })
	})
	add("hasattr", func(m *Machine, a *args) value {
		v, found := m.optional(a.pos[0], a.pos[1].(string))
		m.drop(v)
		return found
	})
	add("getattr", func(m *Machine, a *args) value {
		if len(a.pos) == 2 {
			return m.getattr(a.pos[0], a.pos[1].(string))
		}
		if v, found := m.optional(a.pos[0], a.pos[1].(string)); found {
			return v
		}
		return hold(a.pos[2])
	})
	add("setattr", func(m *Machine, a *args) value { m.setattr(a.pos[0], a.pos[1].(string), hold(a.pos[2])); return none{} })
	add("callable", func(m *Machine, a *args) value {
		switch v := a.pos[0].(type) {
		case *function, *builtin, *method, *class:
			return true
		case *instance:
			return v.class.lookup("__call__") != nil
		}
		return false
	})
	add("id", func(*Machine, *args) value { panic(failure("id() is not known")) })
	add("repr", func(m *Machine, a *args) value { return m.repr(a.pos[0]) })
}

// optional is getattr of what may be missing. What Go has of an object is not all
// that there is, so it cannot be told to be missing there.
func (m *Machine) optional(v value, name string) (found value, ok bool) {
	if found = m.attribute(v, name); found != nil {
		return found, true
	}
	switch v.(type) {
	case *instance, *class, none, int64, float64, bool:
		return nil, false
	}
	panic(noAttribute(v, name))
}

func (m *Machine) length(v value) int64 {
	switch v := v.(type) {
	case string:
		return int64(len([]rune(v)))
	case *tuple:
		return int64(len(v.items))
	case *list:
		return int64(len(v.items))
	case *dict:
		return int64(len(v.keys))
	case *unknown:
		v.fail()
	case *span:
		return v.length()
	case *tensor:
		return v.x.Dim(0)
	case *instance:
		if f := v.class.lookup("__len__"); f != nil {
			return integer(m.call(f, hold(v)))
		}
		if v.items != nil {
			return int64(len(v.items.keys))
		}
	}
	panic(raise("TypeError", "object of type '%s' has no len()", typeName(v)))
}

func addIterations(add func(string, func(*Machine, *args) value)) {
	add("iter", func(m *Machine, a *args) value { return m.iterate(a.pos[0]) })
	add("next", func(m *Machine, a *args) value {
		if l, ok := a.pos[0].(*list); ok && len(l.items) > 0 { // what Go has made of a generator
			return hold(l.items[0])
		}
		if v := a.pos[0].(*iterator).next(); v != nil {
			return v
		}
		if len(a.pos) > 1 {
			return hold(a.pos[1])
		}
		panic(raise("StopIteration", ""))
	})
	add("enumerate", func(m *Machine, a *args) value {
		it, i := m.iterate(a.pos[0]), integer(a.or(1, "start", int64(0)))-1
		return &iterator{refs: refs{1}, done: func(m *Machine) { m.drop(it) }, next: func() value {
			if v := it.next(); v != nil {
				i++
				return newTuple(i, v)
			}
			return nil
		}}
	})
	add("zip", func(m *Machine, a *args) value {
		var its []*iterator
		for _, v := range a.pos {
			its = append(its, m.iterate(v))
		}
		return &iterator{refs: refs{1}, done: func(m *Machine) {
			for _, it := range its {
				m.drop(it)
			}
		}, next: func() value {
			out := newTuple()
			for _, it := range its {
				v := it.next()
				if v == nil {
					m.drop(out)
					return nil
				}
				out.items = append(out.items, v)
			}
			return out
		}}
	})
	add("map", func(m *Machine, a *args) value {
		it, f := m.iterate(a.pos[1]), hold(a.pos[0])
		return &iterator{refs: refs{1}, done: func(m *Machine) { m.drop(f); m.drop(it) }, next: func() value {
			if v := it.next(); v != nil {
				return m.call(f, v)
			}
			return nil
		}}
	})
	add("reversed", func(m *Machine, a *args) value {
		items := m.listOf(a.pos[0])
		slices.Reverse(items)
		l := newList(items...)
		defer m.drop(l)
		return m.iterate(l)
	})
	add("sorted", func(m *Machine, a *args) value {
		a.only("sorted", "reverse")
		l := newList(m.listOf(a.pos[0])...)
		slices.SortStableFunc(l.items, m.order)
		if r := a.get(-1, "reverse"); r != nil && m.truth(r) {
			slices.Reverse(l.items)
		}
		return l
	})
	every := func(all bool) func(*Machine, *args) value {
		return func(m *Machine, a *args) value {
			it := m.iterate(a.pos[0])
			defer m.drop(it)
			for v := it.next(); v != nil; v = it.next() {
				is := m.truth(v)
				m.drop(v)
				if is != all {
					return !all
				}
			}
			return all
		}
	}
	add("all", every(true))
	add("any", every(false))
}
