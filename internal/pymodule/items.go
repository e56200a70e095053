package pymodule

import (
	"slices"
	"strings"
)

// This file is what objects have in them: indices, slices, iteration.

// contains is v in container.
func (m *Machine) contains(container, v value) bool {
	switch x := container.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			panic(raise("TypeError", "'in <string>' requires string as left operand, not %s", typeName(v)))
		}
		return strings.Contains(x, s)
	case *dict:
		return x.find(v) >= 0
	case *tensor:
		return m.tensorContains(x, v)
	case *instance:
		if f := x.class.lookup("__contains__"); f != nil {
			out := m.invoke(f, &args{pos: []value{x, v}})
			return m.truth(out)
		}
		if x.items != nil {
			return x.items.find(v) >= 0
		}
	case attributes:
		if f := x.attribute(m, "__contains__"); f != nil {
			return m.truth(m.invoke(f, &args{pos: []value{v}}))
		}
	}
	items := m.listOf(container)
	defer m.dropAll(items)
	return slices.ContainsFunc(items, func(item value) bool { return same(item, v) || m.equal(item, v) })
}

// item is x[i].
func (m *Machine) item(x, i value) value {
	switch x := x.(type) {
	case *tensor:
		return m.tensorItem(x, i)
	case *tuple:
		if s, ok := i.(*slice); ok {
			return newTuple(holdAll(sliced(x.items, s))...)
		}
		return hold(x.items[place(i, len(x.items), "tuple")])
	case *list:
		if s, ok := i.(*slice); ok {
			return newList(holdAll(sliced(x.items, s))...)
		}
		return hold(x.items[place(i, len(x.items), "list")])
	case *dict:
		if v, ok := x.get(i); ok {
			return hold(v)
		}
		if x.fresh != nil {
			v := m.call(x.fresh)
			x.set(m, hold(i), v)
			return hold(v)
		}
		panic(raise("KeyError", "%s", m.repr(i)))
	case string:
		runes := []rune(x)
		if s, ok := i.(*slice); ok {
			from, to, step := s.bounds(len(runes))
			var out []rune
			for ; step > 0 && from < to || step < 0 && from > to; from += step {
				out = append(out, runes[from])
			}
			return string(out)
		}
		return string(runes[place(i, len(runes), "string")])
	case *instance:
		if f := x.class.lookup("__getitem__"); f != nil {
			return m.invoke(f, &args{pos: []value{x, i}})
		}
		if x.items != nil {
			return m.item(x.items, i)
		}
	case *layerConfigs:
		return x.of(m, i)
	case *class, *builtin, *unknown: // list[int] and the like
		return hold(x)
	}
	panic(raise("TypeError", "'%s' object is not subscriptable", typeName(x)))
}

func place(i value, n int, of string) int {
	at := integer(i)
	if at < 0 {
		at += int64(n)
	}
	if at < 0 || at >= int64(n) {
		panic(raise("IndexError", "%s index out of range", of))
	}
	return int(at)
}

// bounds are the indices of a slice of something that long (PySlice_AdjustIndices).
func (s *slice) bounds(n int) (from, to, step int) {
	step = 1
	if s.step != (none{}) {
		step = int(integer(s.step))
	}
	low, high := 0, n
	if step < 0 {
		low, high = -1, n-1
	}
	end := func(v value, otherwise int) int {
		if v == (none{}) {
			return otherwise
		}
		at := int(integer(v))
		if at < 0 {
			at += n
		}
		return min(max(at, low), high)
	}
	if step < 0 {
		return end(s.from, high), end(s.to, low), step
	}
	return end(s.from, low), end(s.to, high), step
}

func sliced(items []value, s *slice) []value {
	from, to, step := s.bounds(len(items))
	var out []value
	for ; step > 0 && from < to || step < 0 && from > to; from += step {
		out = append(out, items[from])
	}
	return out
}

// setItem is x[i] = v; it takes v over.
func (m *Machine) setItem(x, i, v value) {
	switch x := x.(type) {
	case *list:
		at := place(i, len(x.items), "list assignment")
		old := x.items[at]
		x.items[at] = v
		m.drop(old)
		return
	case *dict:
		x.set(m, hold(i), v)
		return
	case *unknown:
		x.fail()
	case *tensor:
		m.setTensorItem(x, i, v)
		m.drop(v)
		return
	case *instance:
		if f := x.class.lookup("__setitem__"); f != nil {
			m.drop(m.call(f, hold(x), hold(i), v))
			return
		}
		if x.items != nil {
			x.items.set(m, hold(i), v)
			return
		}
	}
	panic(raise("TypeError", "'%s' object does not support item assignment", typeName(x)))
}

// iterate is iter(v). It keeps what it goes through.
func (m *Machine) iterate(v value) *iterator {
	switch x := v.(type) {
	case *iterator:
		return hold(x).(*iterator)
	case *tuple:
		return overItems(hold(x), func() []value { return x.items })
	case *list:
		return overItems(hold(x), func() []value { return x.items })
	case *layerConfigs:
		l := newList()
		for i := range integer(m.getattr(x.config, "num_hidden_layers")) {
			m.spendElements(1)
			l.items = append(l.items, x.of(m, i))
		}
		return overItems(l, func() []value { return l.items })
	case *dict:
		if x.isSet && len(x.keys) > 1 { // in some order: that of hashes, which are random
			l := newList(holdAll(x.keys)...)
			slices.SortFunc(l.items, m.order)
			return overItems(l, func() []value { return l.items })
		}
		return overItems(hold(x), func() []value { return x.keys })
	case string:
		i := 0
		runes := []rune(x)
		return &iterator{refs: refs{1}, next: func() value {
			if i++; i > len(runes) {
				return nil
			}
			return string(runes[i-1])
		}}
	case *span:
		return x.iterate()
	case *instance:
		if f := x.class.lookup("__iter__"); f != nil {
			out := m.call(f, hold(x))
			defer m.drop(out)
			return m.iterate(out)
		}
		if x.items != nil {
			return m.iterate(x.items)
		}
	case *tensor:
		if x.host && x.values != nil {
			l := newList()
			for _, v := range x.values {
				l.items = append(l.items, m.hostScalar(x, v))
			}
			return overItems(l, func() []value { return l.items })
		}
		parts := m.unbound(hold(x).(*tensor), 0).(*tuple)
		return overItems(parts, func() []value { return parts.items })
	case *namespace:
		panic(failure("a module is gone through"))
	}
	panic(raise("TypeError", "'%s' object is not iterable", typeName(v)))
}

func overItems(kept value, items func() []value) *iterator {
	i := 0
	return &iterator{refs: refs{1}, done: func(m *Machine) { m.drop(kept) }, next: func() value {
		if list := items(); i < len(list) {
			i++
			return hold(list[i-1])
		}
		return nil
	}}
}

// listOf is list(v): its elements are the caller's.
func (m *Machine) listOf(v value) []value {
	switch x := v.(type) {
	case *tuple:
		return holdAll(x.items)
	case *list:
		return holdAll(x.items)
	}
	it := m.iterate(v)
	out := []value{}
	for x := it.next(); x != nil; x = it.next() {
		m.spend(elementWork)
		out = append(out, x)
	}
	m.drop(it)
	return out
}

// span is range(…).
type span struct{ from, to, step int64 }

func (s *span) length() int64 {
	if s.step > 0 {
		return max(0, (s.to-s.from+s.step-1)/s.step)
	}
	return max(0, (s.from-s.to-s.step-1)/-s.step)
}

func (s *span) iterate() *iterator {
	at, left := s.from, s.length()
	return &iterator{refs: refs{1}, next: func() value {
		if left == 0 {
			return nil
		}
		left--
		at += s.step
		return at - s.step
	}}
}
