package pymodule

import (
	"cmp"
	"slices"
)

var listMethods, dictMethods, tupleMethods, textMethods map[string]*builtin

func init() { // they refer to what refers to them
	listMethods, dictMethods, tupleMethods, textMethods = methodsOfList(), methodsOfDict(), methodsOfTuple(), stringMethods()
}

// methodsOf are the methods of what Go has.
func methodsOf(v value) map[string]*builtin {
	switch v.(type) {
	case *list:
		return listMethods
	case *dict:
		return dictMethods
	case *tuple:
		return tupleMethods
	case string:
		return textMethods
	}
	return nil
}

func methodsOfList() map[string]*builtin {
	out := make(map[string]*builtin)
	add := func(name string, call func(m *Machine, l *list, a []value) value) {
		out[name] = &builtin{name, func(m *Machine, a *args) value { return call(m, a.pos[0].(*list), a.pos[1:]) }}
	}
	add("append", func(_ *Machine, l *list, a []value) value { l.items = append(l.items, hold(a[0])); return none{} })
	add("extend", func(m *Machine, l *list, a []value) value {
		l.items = append(l.items, m.listOf(a[0])...)
		return none{}
	})
	add("insert", func(_ *Machine, l *list, a []value) value {
		at := integer(a[0])
		if at < 0 {
			at += int64(len(l.items))
		}
		l.items = slices.Insert(l.items, int(min(max(at, 0), int64(len(l.items)))), hold(a[1]))
		return none{}
	})
	add("pop", func(_ *Machine, l *list, a []value) value {
		at := len(l.items) - 1
		if len(a) > 0 || at < 0 {
			at = place(append(a, int64(-1))[0], len(l.items), "pop")
		}
		v := l.items[at]
		l.items = slices.Delete(l.items, at, at+1)
		return v
	})
	add("index", func(m *Machine, l *list, a []value) value { return m.indexOf(l.items, a[0]) })
	add("count", func(m *Machine, l *list, a []value) value { return m.countOf(l.items, a[0]) })
	add("copy", func(_ *Machine, l *list, _ []value) value { return newList(holdAll(l.items)...) })
	add("reverse", func(_ *Machine, l *list, _ []value) value { slices.Reverse(l.items); return none{} })
	add("sort", func(m *Machine, l *list, _ []value) value { slices.SortStableFunc(l.items, m.order); return none{} })
	return out
}

func methodsOfTuple() map[string]*builtin {
	return map[string]*builtin{
		"index": {"index", func(m *Machine, a *args) value { return m.indexOf(a.pos[0].(*tuple).items, a.pos[1]) }},
		"count": {"count", func(m *Machine, a *args) value { return m.countOf(a.pos[0].(*tuple).items, a.pos[1]) }},
		"numel": {"numel", func(_ *Machine, a *args) value { // of a torch.Size
			n := int64(1)
			for _, v := range a.pos[0].(*tuple).items {
				n *= integer(v)
			}
			return n
		}},
	}
}

func (m *Machine) indexOf(items []value, v value) value {
	for i, item := range items {
		if same(item, v) || m.equal(item, v) {
			return int64(i)
		}
	}
	panic(raise("ValueError", "%s is not in list", m.repr(v)))
}

func (m *Machine) countOf(items []value, v value) value {
	n := int64(0)
	for _, item := range items {
		if m.equal(item, v) {
			n++
		}
	}
	return n
}

// order compares for sorting.
func (m *Machine) order(a, b value) int {
	if x, ok := a.(string); ok {
		return cmp.Compare(x, b.(string))
	}
	if x, ok := a.(*tuple); ok {
		y := b.(*tuple)
		for i := range min(len(x.items), len(y.items)) {
			if c := m.order(x.items[i], y.items[i]); c != 0 {
				return c
			}
		}
		return cmp.Compare(len(x.items), len(y.items))
	}
	if !isNumber(a) || !isNumber(b) {
		panic(failure("the order of a %s and a %s is not known", typeName(a), typeName(b)))
	}
	return cmp.Compare(number(a), number(b))
}

func methodsOfDict() map[string]*builtin {
	out := make(map[string]*builtin)
	add := func(name string, call func(m *Machine, d *dict, a *args) value) {
		out[name] = &builtin{name, func(m *Machine, a *args) value {
			return call(m, m.itemsOf(a.pos[0]), &args{a.pos[1:], a.names, a.named})
		}}
	}
	add("get", func(_ *Machine, d *dict, a *args) value {
		if v, ok := d.get(a.pos[0]); ok {
			return hold(v)
		}
		if len(a.pos) > 1 {
			return hold(a.pos[1])
		}
		return none{}
	})
	add("pop", func(m *Machine, d *dict, a *args) value {
		if v, ok := d.remove(m, a.pos[0]); ok {
			return v
		}
		if len(a.pos) > 1 {
			return hold(a.pos[1])
		}
		panic(raise("KeyError", "%s", m.repr(a.pos[0])))
	})
	add("setdefault", func(m *Machine, d *dict, a *args) value {
		if v, ok := d.get(a.pos[0]); ok {
			return hold(v)
		}
		v := value(none{})
		if len(a.pos) > 1 {
			v = a.pos[1]
		}
		d.set(m, hold(a.pos[0]), hold(v))
		return hold(v)
	})
	add("keys", func(_ *Machine, d *dict, _ *args) value { return newList(holdAll(d.keys)...) })
	add("values", func(_ *Machine, d *dict, _ *args) value { return newList(holdAll(d.values)...) })
	add("items", func(_ *Machine, d *dict, _ *args) value {
		l := newList()
		for i, k := range d.keys {
			l.items = append(l.items, newTuple(hold(k), hold(d.values[i])))
		}
		return l
	})
	add("update", func(m *Machine, d *dict, a *args) value {
		for _, v := range a.pos {
			if d.isSet {
				for _, k := range m.listOf(v) {
					d.set(m, k, none{})
				}
				continue
			}
			m.spread(d, v)
		}
		for i, n := range a.names {
			d.set(m, n, hold(a.named[i]))
		}
		return none{}
	})
	add("copy", func(m *Machine, d *dict, _ *args) value {
		c := newDict()
		c.isSet = d.isSet
		m.spread(c, d)
		return c
	})
	add("add", func(m *Machine, d *dict, a *args) value { d.set(m, hold(a.pos[0]), none{}); return none{} })
	add("discard", func(m *Machine, d *dict, a *args) value { d.remove(m, a.pos[0]); return none{} })
	add("isdisjoint", func(m *Machine, d *dict, a *args) value {
		return !slices.ContainsFunc(m.listOf(a.pos[0]), func(v value) bool { return d.find(v) >= 0 })
	})
	add("difference", func(m *Machine, d *dict, a *args) value {
		return m.dictBinary("Sub", d, m.newSet(m.listOf(a.pos[0])))
	})
	add("union", func(m *Machine, d *dict, a *args) value {
		return m.dictBinary("BitOr", d, m.newSet(m.listOf(a.pos[0])))
	})
	add("intersection", func(m *Machine, d *dict, a *args) value {
		return m.dictBinary("BitAnd", d, m.newSet(m.listOf(a.pos[0])))
	})
	add("issubset", func(m *Machine, d *dict, a *args) value {
		other := m.newSet(m.listOf(a.pos[0]))
		return !slices.ContainsFunc(d.keys, func(v value) bool { return other.find(v) < 0 })
	})
	return out
}
