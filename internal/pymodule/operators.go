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
			m.spendElements(int64(len(x) + len(y)))
			return x + y
		}
		if isNumber(b) && op == "Mult" {
			n := max(integer(b), 0)
			m.spendElements(int64(len(x)) * min(n, 1<<30))
			return strings.Repeat(x, int(n))
		}
	case *tuple:
		if y, ok := b.(*tuple); ok && op == "Add" {
			return newTuple(holdAll(x.items, y.items)...)
		}
		if isNumber(b) && op == "Mult" {
			return newTuple(m.times(x.items, integer(b))...)
		}
	case *list:
		if y, ok := b.(*list); ok && op == "Add" {
			return newList(holdAll(x.items, y.items)...)
		}
		if isNumber(b) && op == "Mult" {
			return newList(m.times(x.items, integer(b))...)
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

func (m *Machine) times(items []value, n int64) []value {
	m.spendElements(int64(len(items)) * min(n, 1<<30))
	out := []value{}
	for range n {
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
