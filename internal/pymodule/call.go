package pymodule

import (
	"slices"
)

// This file compiles calls.

// call compiles a call. A method is not made an object of its own for it, as
// LOAD_METHOD does not.
func (c *compiler) call(n *node) expression {
	if fn := n.kids[0]; fn.kind == "Name" && fn.text == "super" && len(n.kids[1].kids) == 0 {
		return c.super()
	}
	arguments, count := c.arguments(n.kids[1].kids, n.kids[2].kids), len(n.kids[1].kids)
	if fn := n.kids[0]; fn.kind == "Attribute" {
		object, owned, name := c.operand(fn.kids[0]), !c.isLocal(fn.kids[0]), fn.text
		return func(f *frame) value {
			x := object(f)
			callee, self := f.m.find(x, name)
			if callee == nil {
				panic(noAttribute(x, name))
			}
			if owned {
				f.m.drop(x)
			}
			top := f.m.top
			a := f.m.newArgs(args{pos: f.m.space(count + 1)[:0]})
			if self != nil {
				a.pos = append(a.pos, self)
			}
			rest := arguments(f, a)
			return f.finishCall(callee, a, rest, top)
		}
	}
	callee := c.expr(n.kids[0])
	return func(f *frame) value {
		fn := callee(f)
		top := f.m.top
		a := f.m.newArgs(args{pos: f.m.space(count)[:0]})
		rest := arguments(f, a)
		return f.finishCall(fn, a, rest, top)
	}
}

// finishCall calls, and lets the function go, and what the arguments were unpacked
// from. The arguments were on the stack above top.
func (f *frame) finishCall(fn value, a *args, rest value, top int) value {
	line := f.line
	out := f.m.callOwned(fn, *a)
	f.m.freeArgs = append(f.m.freeArgs, a)
	f.line = line
	f.m.backTo(top)
	f.m.drop(fn)
	f.m.drop(rest)
	return out
}

// arguments compiles the arguments of a call. With * or **, the tuple and the
// dictionary that they are collected in live until the call returns.
func (c *compiler) arguments(pos, named []*node) func(f *frame, a *args) (rest value) {
	starred := slices.ContainsFunc(pos, func(n *node) bool { return n.kind == "Starred" }) ||
		slices.ContainsFunc(named, func(n *node) bool { return n.text == "" })
	names := make([]string, len(named))
	values := make([]expression, len(named))
	if !starred {
		items := c.exprs(pos)
		for i, k := range named {
			names[i], values[i] = k.text, c.expr(k.kids[0])
		}
		return func(f *frame, a *args) value {
			for _, x := range items {
				a.pos = append(a.pos, x(f))
			}
			if len(values) > 0 {
				a.names, a.named = names, f.m.space(len(values))
				for i, x := range values {
					a.named[i] = x(f)
				}
			}
			return nil
		}
	}
	items := c.elements(pos)
	for i, k := range named {
		names[i], values[i] = k.text, c.expr(k.kids[0])
	}
	return func(f *frame, a *args) value {
		u := f.m.unpacking()
		u.pos = items(f, u.pos)
		for _, v := range u.pos {
			a.pos = append(a.pos, hold(v))
		}
		if len(values) == 0 {
			return u
		}
		for i, x := range values {
			v := x(f)
			if names[i] != "" {
				u.names, u.named = append(u.names, names[i]), append(u.named, v)
				continue
			}
			d := f.m.itemsOf(v)
			for i, k := range d.keys {
				u.names, u.named = append(u.names, k.(string)), append(u.named, hold(d.values[i]))
			}
			f.m.drop(v)
		}
		a.names, a.named = u.names, f.m.space(len(u.named))
		for i, v := range u.named {
			a.named[i] = hold(v)
		}
		return u
	}
}

// unpacked is what the arguments of a call with * or ** are collected in: a tuple and a
// dictionary.
type unpacked struct {
	refs
	pos   []value
	names []string
	named []value
}

// unpacking is one that an earlier call is done with, or a new one.
func (m *Machine) unpacking() *unpacked {
	last := len(m.unpacked) - 1
	if last < 0 {
		return &unpacked{refs: refs{1}}
	}
	u := m.unpacked[last]
	m.unpacked = m.unpacked[:last]
	u.n = 1
	return u
}

func (u *unpacked) free(m *Machine) {
	m.dropAll(u.named)
	m.dropBackwards(u.pos)
	clear(u.named)
	clear(u.pos)
	u.pos, u.names, u.named = u.pos[:0], u.names[:0], u.named[:0]
	m.unpacked = append(m.unpacked, u)
}

// spread is **v in a dictionary or in a call.
func (m *Machine) spread(into *dict, v value) {
	from := m.itemsOf(v)
	for i, k := range from.keys {
		into.set(m, hold(k), hold(from.values[i]))
	}
}

// itemsOf is the dictionary that an object is.
func (m *Machine) itemsOf(v value) *dict {
	switch x := v.(type) {
	case *dict:
		return x
	case *instance:
		if x.items != nil {
			return x.items
		}
	}
	panic(failure("a %s is no mapping that is known", typeName(v)))
}

// elements compiles the elements of a list, some of them with a star, which are put behind
// others.
func (c *compiler) elements(list []*node) func(f *frame, out []value) []value {
	items := make([]expression, len(list))
	stars := make([]bool, len(list))
	for i, n := range list {
		if stars[i] = n.kind == "Starred"; stars[i] {
			n = n.kids[0]
		}
		items[i] = c.expr(n)
	}
	return func(f *frame, out []value) []value {
		out = slices.Grow(out, len(items))
		for i, x := range items {
			v := x(f)
			if !stars[i] {
				out = append(out, v)
				continue
			}
			out = append(out, f.m.listOf(v)...)
			f.m.drop(v)
		}
		return out
	}
}

// super compiles super() without arguments: the first name of the function, seen
// from the class that it is written in.
func (c *compiler) super() expression {
	fn := c.scope
	for fn.kind == functionScope && fn.params == 0 && fn.parent != nil {
		fn = fn.parent
	}
	self := c.expr(&node{kind: "Name", text: fn.order[0].name})
	return func(f *frame) value {
		x := self(f)
		k := f.m.classOf(x)
		if own, ok := x.(*class); ok {
			k = own
		}
		f.m.drop(x)
		if f.owner == nil || k == nil {
			panic(failure("super() outside of a class"))
		}
		return &bases{x, k.mro[slices.Index(k.mro, f.owner)+1:]}
	}
}
