package pymodule

import (
	"math"
	"slices"
	"strings"
)

// binary is a op b.
func (m *Machine) binary(op string, a, b value) value {
	if out, ok := m.tensorBinary(op, a, b); ok {
		return out
	}
	switch x := a.(type) {
	case string:
		if op == "Mod" {
			return m.percent(x, b)
		}
		if y, ok := b.(string); ok && op == "Add" {
			return x + y
		}
		if isNumber(b) && op == "Mult" {
			return strings.Repeat(x, int(max(integer(b), 0)))
		}
	case *tuple:
		if y, ok := b.(*tuple); ok && op == "Add" {
			return newTuple(holdAll(x.items, y.items)...)
		}
		if isNumber(b) && op == "Mult" {
			return newTuple(repeated(x.items, integer(b))...)
		}
	case *list:
		if y, ok := b.(*list); ok && op == "Add" {
			return newList(holdAll(x.items, y.items)...)
		}
		if isNumber(b) && op == "Mult" {
			return newList(repeated(x.items, integer(b))...)
		}
	case *class: // a | b, for isinstance
		if op == "BitOr" {
			return newTuple(a, b)
		}
	case *dict:
		if y, ok := b.(*dict); ok && x.isSet == y.isSet {
			return m.dictBinary(op, x, y)
		}
	}
	if isNumber(a) && isNumber(b) {
		return arithmetic(op, a, b)
	}
	switch b.(type) {
	case *tuple, *list, string:
		if isNumber(a) && op == "Mult" {
			return m.binary(op, b, a)
		}
	}
	panic(raise("TypeError", "unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b)))
}

func holdAll(lists ...[]value) []value {
	out := slices.Concat(lists...)
	for _, v := range out {
		hold(v)
	}
	return out
}

func repeated(items []value, times int64) []value {
	out := []value{}
	for range times {
		out = append(out, holdAll(items)...)
	}
	return out
}

// dictBinary is | of dictionaries, and the operators of sets.
func (m *Machine) dictBinary(op string, x, y *dict) value {
	out := newDict()
	out.isSet = x.isSet
	take := func(from *dict, which func(key value) bool) {
		for i, k := range from.keys {
			if which(k) {
				out.set(m, hold(k), hold(from.values[i]))
			}
		}
	}
	switch op {
	case "BitOr":
		take(x, func(value) bool { return true })
		take(y, func(value) bool { return true })
	case "BitAnd":
		take(x, func(k value) bool { return y.find(k) >= 0 })
	case "Sub":
		take(x, func(k value) bool { return y.find(k) < 0 })
	default:
		panic(failure("%s of sets is not known", op))
	}
	return out
}

func arithmetic(op string, a, b value) value {
	_, aFloat := a.(float64)
	_, bFloat := b.(float64)
	if aFloat || bFloat || op == "Div" {
		return floats(op, number(a), number(b))
	}
	x, y := integer(a), integer(b)
	_, aBool := a.(bool)
	_, bBool := b.(bool)
	if aBool && bBool && strings.HasPrefix(op, "Bit") {
		return integers(op, x, y) != int64(0)
	}
	return integers(op, x, y)
}

func floats(op string, x, y float64) value {
	switch op {
	case "Add":
		return x + y
	case "Sub":
		return x - y
	case "Mult":
		return x * y
	case "Pow":
		return math.Pow(x, y)
	}
	if y == 0 {
		panic(raise("ZeroDivisionError", "division by zero"))
	}
	switch op {
	case "Div":
		return x / y
	case "FloorDiv":
		return math.Floor(x / y)
	case "Mod":
		r := math.Mod(x, y)
		if r != 0 && (r < 0) != (y < 0) {
			r += y
		}
		return r
	}
	panic(raise("TypeError", "unsupported operand type(s) for %s: 'float'", op))
}

func integers(op string, x, y int64) value {
	switch op {
	case "Add":
		return x + y
	case "Sub":
		return x - y
	case "Mult":
		if p := x * y; x == 0 || p/x == y {
			return p
		}
		panic(failure("a number beyond 64 bits"))
	case "Pow":
		return power(x, y)
	case "BitAnd":
		return x & y
	case "BitOr":
		return x | y
	case "BitXor":
		return x ^ y
	case "LShift":
		return x << y
	case "RShift":
		return x >> y
	}
	if y == 0 {
		panic(raise("ZeroDivisionError", "integer division or modulo by zero"))
	}
	quotient, remainder := x/y, x%y
	if remainder != 0 && (remainder < 0) != (y < 0) {
		quotient, remainder = quotient-1, remainder+y
	}
	if op == "Mod" {
		return remainder
	}
	return quotient
}

func power(x, y int64) value {
	if y < 0 {
		return math.Pow(float64(x), float64(y))
	}
	out := int64(1)
	for range y {
		out = integers("Mult", out, x).(int64)
	}
	return out
}

// binaryInPlace is a op= b. The caller owns what it returns, which may be a.
func (m *Machine) binaryInPlace(op string, a, b value) value {
	switch x := a.(type) {
	case *tensor:
		return m.tensorInPlace(op, x, b)
	case *list:
		if op == "Add" {
			x.items = append(x.items, m.listOf(b)...)
			return hold(x)
		}
	case *dict:
		if y, ok := b.(*dict); ok && op == "BitOr" {
			m.spread(x, y)
			return hold(x)
		}
	}
	return m.binary(op, a, b)
}

func (m *Machine) unary(op string, v value) value {
	switch x := v.(type) {
	case *tensor:
		return m.tensorUnary(op, x)
	case float64:
		if op == "USub" {
			return -x
		}
		return x
	case int64, bool:
		n := integer(x)
		switch op {
		case "USub":
			return -n
		case "Invert":
			return ^n
		}
		return n
	}
	panic(raise("TypeError", "bad operand type for unary %s: '%s'", op, typeName(v)))
}

func (m *Machine) compare(op string, a, b value) value {
	switch op {
	case "Is":
		return same(a, b)
	case "IsNot":
		return !same(a, b)
	case "In":
		return m.contains(b, a)
	case "NotIn":
		return !m.contains(b, a)
	}
	if out, ok := m.tensorCompare(op, a, b); ok {
		return out
	}
	switch op {
	case "Eq":
		return m.equal(a, b)
	case "NotEq":
		return !m.equal(a, b)
	}
	order := 0
	switch x := a.(type) {
	case string:
		y, ok := b.(string)
		if !ok {
			panic(raise("TypeError", "'%s' not supported between instances of 'str' and '%s'", op, typeName(b)))
		}
		order = strings.Compare(x, y)
	case version:
		order = x.compare(b)
	default:
		if !isNumber(a) || !isNumber(b) {
			panic(raise("TypeError", "'%s' not supported between instances of '%s' and '%s'", op, typeName(a), typeName(b)))
		}
		switch x, y := number(a), number(b); {
		case x < y:
			order = -1
		case x > y:
			order = 1
		}
	}
	return ordered(op, order)
}

func ordered(op string, order int) bool {
	switch op {
	case "Lt":
		return order < 0
	case "LtE":
		return order <= 0
	case "Gt":
		return order > 0
	default:
		return order >= 0
	}
}

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
		panic(failure("a tensor is gone through"))
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
