package pymodule

import (
	"math"
	"strconv"
)

func (c *compiler) exprs(list []*node) []expression {
	out := make([]expression, len(list))
	for i, n := range list {
		out[i] = c.expr(n)
	}
	return out
}

// expr compiles an expression.
func (c *compiler) expr(n *node) expression {
	switch n.kind {
	case "Constant":
		v := c.constant(n)
		return func(*frame) value { return v }
	case "Name":
		return c.name(n)
	case "Attribute":
		object, owned, name := c.operand(n.kids[0]), !c.isLocal(n.kids[0]), n.text
		return func(f *frame) value {
			x := object(f)
			out := f.m.getattr(x, name)
			if owned {
				f.m.drop(x)
			}
			return out
		}
	case "Call":
		return c.call(n)
	case "BinOp":
		a, b, op := c.operand(n.kids[0]), c.operand(n.kids[1]), n.text
		dropA, dropB := !c.isLocal(n.kids[0]), !c.isLocal(n.kids[1])
		return func(f *frame) value {
			x := a(f)
			y := b(f)
			out := f.m.binary(op, x, y)
			if dropA {
				f.m.drop(x)
			}
			if dropB {
				f.m.drop(y)
			}
			return out
		}
	case "UnaryOp":
		return c.unary(n)
	case "BoolOp":
		return c.boolOp(n)
	case "Compare":
		return c.compare(n)
	case "IfExp":
		test, a, b := c.condition(n.kids[0]), c.expr(n.kids[1]), c.expr(n.kids[2])
		return func(f *frame) value {
			if test(f) {
				return a(f)
			}
			return b(f)
		}
	case "Subscript":
		object, index := c.operand(n.kids[0]), c.expr(n.kids[1])
		owned := !c.isLocal(n.kids[0])
		return func(f *frame) value {
			x := object(f)
			i := index(f)
			out := f.m.item(x, i)
			if owned {
				f.m.drop(x)
			}
			f.m.drop(i)
			return out
		}
	case "Slice":
		return c.slice(n)
	case "NamedExpr":
		x, store := c.expr(n.kids[1]), c.storeName(n.kids[0].text)
		return func(f *frame) value {
			v := x(f)
			store(f, hold(v))
			return v
		}
	case "Lambda":
		return c.function("<lambda>", n, n.kids[0], func(inner *compiler) (statement, expression) {
			return nil, inner.expr(n.kids[1])
		})
	case "JoinedStr":
		return c.joined(n)
	}
	return c.display(n)
}

func (c *compiler) constant(n *node) value {
	rest := n.text[1:]
	switch n.text[0] {
	case 'N':
		return none{}
	case 'E':
		return ellipsis{}
	case 'T':
		return true
	case 'F':
		return false
	case 's':
		return rest
	case 'i':
		if v, err := strconv.ParseInt(rest, 10, 64); err == nil {
			return v
		}
	case 'f':
		if v, err := strconv.ParseFloat(rest, 64); err == nil || math.IsInf(v, 0) {
			return v
		}
	}
	return &unknown{"the constant " + n.text}
}

// isLocal reports whether a name can be looked at without taking a reference: its
// function keeps it.
func (c *compiler) isLocal(n *node) bool {
	return n.kind == "Name" && c.resolve(n.text) != nil
}

// operand is expr, but a local name stays the function's.
func (c *compiler) operand(n *node) expression {
	if c.isLocal(n) {
		return c.peek(n.text)
	}
	return c.expr(n)
}

func (c *compiler) peek(name string) expression {
	v := c.resolve(name)
	return func(f *frame) value {
		x := f.locals[v.slot]
		if v.cell {
			x = x.(*cell).value
		}
		if x == nil {
			panic(raise("UnboundLocalError", "local variable '%s' referenced before assignment", name))
		}
		return x
	}
}

func (c *compiler) name(n *node) expression {
	name := n.text
	if c.resolve(name) != nil {
		peek := c.peek(name)
		return func(f *frame) value { return hold(peek(f)) }
	}
	if c.kind == classScope {
		return func(f *frame) value {
			if v, ok := f.names.class.attrs[name]; ok {
				return hold(v)
			}
			return hold(f.globals.load(f.m, name))
		}
	}
	return func(f *frame) value { return hold(f.globals.load(f.m, name)) }
}

func (c *compiler) slice(n *node) expression {
	var ends [3]expression
	for i, k := range n.kids {
		ends[i] = func(*frame) value { return none{} }
		if k != nil {
			ends[i] = c.expr(k)
		}
	}
	return func(f *frame) value { return &slice{ends[0](f), ends[1](f), ends[2](f)} }
}

// condition compiles bool(x).
func (c *compiler) condition(n *node) func(f *frame) bool {
	switch {
	case n.kind == "BoolOp":
		var tests []func(f *frame) bool
		for _, k := range n.kids[0].kids {
			tests = append(tests, c.condition(k))
		}
		or := n.text == "Or"
		return func(f *frame) bool {
			for _, t := range tests {
				if t(f) == or {
					return or
				}
			}
			return !or
		}
	case n.kind == "UnaryOp" && n.text == "Not":
		test := c.condition(n.kids[0])
		return func(f *frame) bool { return !test(f) }
	}
	x, owned := c.operand(n), !c.isLocal(n)
	return func(f *frame) bool {
		v := x(f)
		out := f.m.truth(v)
		if owned {
			f.m.drop(v)
		}
		return out
	}
}

func (c *compiler) unary(n *node) expression {
	if n.text == "Not" {
		test := c.condition(n)
		return func(f *frame) value { return test(f) }
	}
	x, op := c.expr(n.kids[0]), n.text
	return func(f *frame) value {
		v := x(f)
		out := f.m.unary(op, v)
		f.m.drop(v)
		return out
	}
}

func (c *compiler) boolOp(n *node) expression {
	items, or := c.exprs(n.kids[0].kids), n.text == "Or"
	return func(f *frame) value {
		for _, x := range items[:len(items)-1] {
			v := x(f)
			if f.m.truth(v) == or {
				return v
			}
			f.m.drop(v)
		}
		return items[len(items)-1](f)
	}
}

func (c *compiler) compare(n *node) expression {
	ops := splitNames(n.text)
	left, rest := c.expr(n.kids[0]), c.exprs(n.kids[1].kids)
	if len(rest) == 1 {
		op, right := ops[0], rest[0]
		return func(f *frame) value {
			a := left(f)
			b := right(f)
			out := f.m.compare(op, a, b)
			f.m.drop(a)
			f.m.drop(b)
			return out
		}
	}
	return func(f *frame) value {
		a := left(f)
		for i, x := range rest {
			b := x(f)
			out := f.m.compare(ops[i], a, b)
			f.m.drop(a)
			if i == len(rest)-1 || !f.m.truth(out) {
				f.m.drop(b)
				return out
			}
			f.m.drop(out)
			a = b
		}
		return nil
	}
}
