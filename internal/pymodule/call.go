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
		all := newTuple(items(f)...)
		kept := newTuple(all)
		for _, v := range all.items {
			a.pos = append(a.pos, hold(v))
		}
		if len(values) == 0 {
			return kept
		}
		keywords := newDict()
		for i, x := range values {
			v := x(f)
			if names[i] != "" {
				keywords.set(f.m, names[i], v)
				continue
			}
			f.m.spread(keywords, v)
			f.m.drop(v)
		}
		for i, k := range keywords.keys {
			a.names, a.named = append(a.names, k.(string)), append(a.named, hold(keywords.values[i]))
		}
		kept.items = append(kept.items, keywords)
		return kept
	}
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

// elements compiles the elements of a list, some of them with a star.
func (c *compiler) elements(list []*node) func(f *frame) []value {
	items := make([]expression, len(list))
	stars := make([]bool, len(list))
	for i, n := range list {
		if stars[i] = n.kind == "Starred"; stars[i] {
			n = n.kids[0]
		}
		items[i] = c.expr(n)
	}
	return func(f *frame) []value {
		out := make([]value, 0, len(items))
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
