package pymodule

import (
	"slices"
)

// class is a Python class.
type class struct {
	name   string
	bases  []*class
	mro    []*class // the class itself first
	attrs  map[string]value
	cache  map[string]value // of lookups through all bases
	fields []string         // that are declared with a type, of a dataclass
	file   string
	// make makes an object, nil for one that has nothing but attributes.
	make func(m *Machine, c *class, a *args) value
	// holds reports whether an object is of an abstract class, nil for any other.
	holds func(v value) bool
}

// newClass makes a class; what its body does comes later.
func newClass(name string, bases ...*class) *class {
	c := &class{name: name, bases: bases, attrs: make(map[string]value), cache: make(map[string]value)}
	lists := make([][]*class, 0, len(bases)+1)
	for _, b := range bases {
		lists = append(lists, slices.Clone(b.mro))
		if c.make == nil {
			c.make = b.make
		}
	}
	c.mro = append([]*class{c}, merge(append(lists, slices.Clone(bases)))...)
	return c
}

// merge is the C3 linearization.
func merge(lists [][]*class) []*class {
	var out []*class
	for {
		lists = slices.DeleteFunc(lists, func(l []*class) bool { return len(l) == 0 })
		if len(lists) == 0 {
			return out
		}
		i := slices.IndexFunc(lists, func(l []*class) bool {
			return !slices.ContainsFunc(lists, func(other []*class) bool { return slices.Contains(other[1:], l[0]) })
		})
		if i < 0 {
			panic(raise("TypeError", "Cannot create a consistent method resolution order (MRO)"))
		}
		next := lists[i][0]
		out = append(out, next)
		for j := range lists {
			if lists[j][0] == next {
				lists[j] = lists[j][1:]
			}
		}
	}
}

// lookup finds an attribute in the class or its bases; nil if there is none. It
// stays theirs.
func (c *class) lookup(name string) value {
	if v, ok := c.cache[name]; ok {
		return v
	}
	v := lookupIn(c.mro, name)
	c.cache[name] = v
	return v
}

func lookupIn(mro []*class, name string) value {
	for _, k := range mro {
		if v, ok := k.attrs[name]; ok {
			return v
		}
	}
	return nil
}

func (c *class) set(name string, v value) {
	c.attrs[name] = v
	clear(c.cache)
}

// is reports whether the class is another one, or derived from it.
func (c *class) is(other *class) bool { return c == other || slices.Contains(c.mro, other) }

// fields are the attributes of an object, in the order in which they came.
type fields struct {
	names  []string
	values []value
}

func (f *fields) get(name string) (value, bool) {
	for i, n := range f.names {
		if n == name {
			return f.values[i], true
		}
	}
	return nil, false
}

// set takes a value over.
func (f *fields) set(m *Machine, name string, v value) {
	for i, n := range f.names {
		if n == name {
			old := f.values[i]
			f.values[i] = v
			m.drop(old)
			return
		}
	}
	f.names, f.values = append(f.names, name), append(f.values, v)
}

func (f *fields) remove(m *Machine, name string) bool {
	i := slices.Index(f.names, name)
	if i < 0 {
		return false
	}
	v := f.values[i]
	f.names, f.values = slices.Delete(f.names, i, i+1), slices.Delete(f.values, i, i+1)
	m.drop(v)
	return true
}

// instance is an object of a class. That of a class derived from dict has items.
type instance struct {
	refs
	class  *class
	fields fields
	items  *dict
	native any // what Go has of it
}

// free releases the attributes, then what is in it (subtype_dealloc).
func (x *instance) free(m *Machine) {
	if f := x.class.lookup("__del__"); f != nil {
		x.n = 2 // the call's, and one that keeps it from being freed again
		m.drop(m.call(f, x))
	}
	m.dropAll(x.fields.values)
	if x.items != nil {
		x.items.free(m)
	}
}

type (
	property     struct{ get, set value }
	staticMethod struct{ f value }
	classMethod  struct{ f value }
	// bases is super(): an object seen as one of the classes behind another.
	bases struct {
		object value
		mro    []*class
	}
)

// instantiate calls a class. The arguments stay the caller's.
func (m *Machine) instantiate(c *class, a *args) value {
	m.spend(objectWork)
	if c.make != nil {
		return c.make(m, c, a)
	}
	x := &instance{refs: refs{1}, class: c}
	m.initialize(x, a)
	return x
}

// initialize calls __init__.
func (m *Machine) initialize(x *instance, a *args) {
	if f := x.class.lookup("__init__"); f != nil {
		top := m.top
		given := m.newArgs(args{m.withFirst(x, a.pos), a.names, a.named})
		m.drop(m.invoke(f, given))
		m.freeArgs = append(m.freeArgs, given)
		m.backTo(top)
	}
}

// attribute is getattr(v, name), nil if there is none. The caller owns it.
func (m *Machine) attribute(v value, name string) value {
	f, self := m.find(v, name)
	if self != nil {
		return &method{refs{1}, self, f}
	}
	return f
}

// find looks an attribute up. If it is a method, it returns what it is bound to,
// too. The caller owns both.
func (m *Machine) find(v value, name string) (f, self value) {
	switch x := v.(type) {
	case *instance:
		if f, ok := x.fields.get(name); ok {
			return m.field(x, f), nil
		}
		if f := x.class.lookup(name); f != nil {
			return m.bound(f, x, x.class)
		}
		return m.computed(x, name), nil
	case *tensor:
		return m.tensorAttribute(x, name)
	case *class:
		if f := x.lookup(name); f != nil {
			switch f := f.(type) {
			case *classMethod:
				return hold(f.f), x
			case *staticMethod:
				return hold(f.f), nil
			}
			return hold(f), nil
		}
		return x.special(name), nil
	case *bases:
		if f := lookupIn(x.mro, name); f != nil {
			self, _ := x.object.(*instance)
			if self == nil {
				return m.bound(f, x.object, x.object.(*class))
			}
			return m.bound(f, self, self.class)
		}
	case *namespace:
		return hold(x.load(m, name)), nil
	case *function:
		return x.special(name), nil
	case *builtin:
		if name == "__name__" {
			return x.name, nil
		}
	case *tuple:
		if i := slices.Index(x.names, name); i >= 0 {
			return hold(x.items[i]), nil
		}
	case *unknown:
		x.fail()
	case attributes:
		return x.attribute(m, name), nil
	}
	if f := methodsOf(v)[name]; f != nil {
		return f, hold(v)
	}
	return nil, nil
}

// attributes is what an object of Go has to offer.
type attributes interface {
	attribute(m *Machine, name string) value
}

// bound is what a class has for a name, seen through an object.
func (m *Machine) bound(f, self value, c *class) (value, value) {
	switch f := f.(type) {
	case *function:
		return hold(f), hold(self)
	case *builtin:
		return f, hold(self)
	case *property:
		return m.call(f.get, hold(self)), nil
	case *staticMethod:
		return hold(f.f), nil
	case *classMethod:
		return hold(f.f), c
	}
	return hold(f), nil
}

// computed is what __getattr__ gives, and what every object has.
func (m *Machine) computed(x *instance, name string) value {
	switch name {
	case "__class__":
		return x.class
	case "__dict__":
		d := newDict()
		for i, n := range x.fields.names {
			d.set(m, n, hold(x.fields.values[i]))
		}
		return d
	}
	if f, ok := x.class.lookup("__getattr__").(*builtin); ok {
		return f.call(m, &args{pos: []value{x, name}})
	}
	if x.items != nil {
		if f := dictMethods[name]; f != nil {
			return &method{refs{1}, hold(x), f}
		}
	}
	return nil
}

func (c *class) special(name string) value {
	switch name {
	case "__name__", "__qualname__":
		return c.name
	case "__module__":
		return c.file
	case "__mro__":
		out := newTuple()
		for _, k := range c.mro {
			out.items = append(out.items, k)
		}
		return out
	}
	return nil
}

func (f *function) special(name string) value {
	if v, ok := f.fields.get(name); ok {
		return hold(v)
	}
	if name == "__name__" || name == "__qualname__" {
		return f.code.name
	}
	return nil
}

// getattr is getattr(v, name), which must be there.
func (m *Machine) getattr(v value, name string) value {
	if out := m.attribute(v, name); out != nil {
		return out
	}
	panic(noAttribute(v, name))
}

// noAttribute is an AttributeError, or a failure where the object is Go's: there
// may be such an attribute.
func noAttribute(v value, name string) any {
	switch v := v.(type) {
	case *instance:
		return raise("AttributeError", "'%s' object has no attribute '%s'", v.class.name, name)
	case *class:
		return raise("AttributeError", "type object '%s' has no attribute '%s'", v.name, name)
	case none, int64, float64, bool:
		return raise("AttributeError", "'%s' object has no attribute '%s'", typeName(v), name)
	}
	return failure("the attribute %s of a %s is not known", name, typeName(v))
}

// setattr takes a value over.
func (m *Machine) setattr(v value, name string, to value) {
	switch x := v.(type) {
	case *instance:
		if f := x.class.lookup(name); f != nil {
			if p, ok := f.(*property); ok && p.set != nil {
				m.drop(m.call(p.set, hold(x), to))
				return
			}
		}
		switch f := x.class.lookup("__setattr__"); f {
		case nil:
		case m.setsModules:
			setModuleAttribute(m, x, name, to)
			return
		default:
			m.drop(m.call(f, hold(x), name, to))
			return
		}
		x.fields.set(m, name, to)
	case *class:
		x.set(name, to)
	case *function:
		x.fields.set(m, name, to)
	case *tensor:
		m.setTensorAttribute(x, name, to)
	case *functionContext:
		x.fields.set(m, name, to)
	case *builtin:
		m.drop(to) // __name__ and the like of a shim
	default:
		panic(failure("an attribute of a %s is set", typeName(v)))
	}
}

// isInstance is isinstance(v, of).
func (m *Machine) isInstance(v, of value) bool {
	switch k := of.(type) {
	case *tuple:
		return slices.ContainsFunc(k.items, func(k value) bool { return m.isInstance(v, k) })
	case *class:
		if k.holds != nil {
			return k.holds(v)
		}
		c := m.classOf(v)
		return k == m.types["object"] || c != nil && c.is(k)
	case *unknown:
		k.fail()
	}
	panic(failure("isinstance of a %s", typeName(of)))
}

// classOf is type(v).
func (m *Machine) classOf(v value) *class {
	switch x := v.(type) {
	case *instance:
		return x.class
	case *dict:
		if x.class != nil {
			return x.class
		}
	case *tensor:
		if x.parameter {
			return m.types["Parameter"]
		}
	}
	return m.types[typeName(v)]
}
