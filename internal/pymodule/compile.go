package pymodule

import (
	"fmt"
	"strings"
)

// statement runs a statement; expression computes a value, which the caller owns.
type (
	statement  func(f *frame) signal
	expression func(f *frame) value
)

// signal is how a statement ended.
type signal int

const (
	onward signal = iota
	returned
	broke
	continued
)

// compiler turns a tree into closures, once for all processes.
type compiler struct{ *scope }

func splitNames(s string) []string { return strings.Split(s, ",") }

// aliasName is what an import binds.
func aliasName(alias *node) string {
	name, as, _ := strings.Cut(alias.text, ",")
	if as != "" {
		return as
	}
	first, _, _ := strings.Cut(name, ".")
	return first
}

// unsupported fails at compile time, with the place.
func (c *compiler) unsupported(n *node) *Error {
	return &Error{c.file, n.line, n.kind + " " + n.text + " is not known"}
}

// compileModule compiles a module. What fails while it is imported, as it asks for
// something that is not known, leaves names that fail where they are used. What binds no name
// in a program of a user's own must not fail if it is about torch.
func compileModule(t *moduleTree, own bool) *code {
	c := &compiler{newScope(nil, moduleScope, t.file)}
	var body []statement
	for _, n := range t.root.kids[0].kids {
		s := c.block([]*node{n})
		bound := newScope(nil, functionScope, "")
		bound.bind(n)
		body = append(body, func(f *frame) signal {
			if err := f.importing(s); err != nil {
				if own && len(bound.vars) == 0 && n.contains(func(k *node) bool { return k.kind == "Name" && k.text == "torch" }) {
					panic(err)
				}
				for name := range bound.vars {
					f.globals.names[name] = &unknown{fmt.Sprintf("%s, which is bound where an import fails (%v),", name, err)}
				}
			}
			return onward
		})
	}
	return &code{name: "<module>", file: t.file, body: func(f *frame) signal {
		for _, s := range body {
			s(f)
		}
		return onward
	}}
}

// importing runs a statement of a module and catches what it fails with.
func (f *frame) importing(s statement) (err error) {
	m, top, depth := f.m, f.m.top, f.m.depth
	defer func() {
		if err != nil {
			clear(m.stack[top:max(top, m.top)])
			m.top, m.depth, m.frame = top, depth, f
		}
	}()
	defer m.catch(&err)
	s(f)
	return nil
}

func (c *compiler) block(list []*node) statement {
	var body []statement
	var lines []int
	for _, n := range list {
		if s := c.statement(n); s != nil {
			body, lines = append(body, s), append(lines, n.line)
		}
	}
	return func(f *frame) signal {
		for i, s := range body {
			f.line = lines[i]
			if sig := s(f); sig != onward {
				return sig
			}
		}
		return onward
	}
}

func (c *compiler) statement(n *node) statement {
	switch n.kind {
	case "Expr":
		x := c.expr(n.kids[0])
		return func(f *frame) signal { f.m.drop(x(f)); return onward }
	case "Assign":
		return c.assignment(n.kids[0].kids, c.expr(n.kids[1]))
	case "AnnAssign":
		return c.annotated(n)
	case "AugAssign":
		return c.augmented(n)
	case "Return":
		return c.returns(n.kids[0])
	case "If":
		return c.ifs(n)
	case "For":
		return c.loop(n)
	case "While":
		return c.while(n)
	case "With":
		return c.with(n.kids[0].kids, n.kids[1].kids)
	case "FunctionDef":
		return c.define(n)
	case "ClassDef":
		return c.defineClass(n)
	case "Import", "ImportFrom":
		return c.imports(n)
	case "Delete":
		return c.deletes(n.kids[0].kids)
	case "Raise":
		return c.raises(n)
	case "Try":
		return c.try(n)
	case "Assert":
		return c.asserts(n)
	case "Pass", "Global":
		return nil
	case "Break":
		return func(*frame) signal { return broke }
	case "Continue":
		return func(*frame) signal { return continued }
	}
	err := c.unsupported(n)
	return func(*frame) signal { panic(err) }
}

func (c *compiler) assignment(targets []*node, x expression) statement {
	stores := make([]func(*frame, value), len(targets))
	for i, t := range targets {
		stores[i] = c.store(t)
	}
	if len(stores) == 1 {
		store := stores[0]
		return func(f *frame) signal { store(f, x(f)); return onward }
	}
	return func(f *frame) signal {
		v := x(f)
		for range stores[1:] {
			hold(v)
		}
		for _, store := range stores {
			store(f, v)
		}
		return onward
	}
}

// store binds a target; the value is the target's then.
func (c *compiler) store(n *node) func(*frame, value) {
	switch n.kind {
	case "Name":
		return c.storeName(n.text)
	case "Attribute":
		object, name := c.expr(n.kids[0]), n.text
		return func(f *frame, v value) {
			x := object(f)
			f.m.setattr(x, name, v)
			f.m.drop(x)
		}
	case "Subscript":
		object, index := c.expr(n.kids[0]), c.expr(n.kids[1])
		return func(f *frame, v value) {
			x := object(f)
			i := index(f)
			f.m.setItem(x, i, v)
			f.m.drop(x)
			f.m.drop(i)
		}
	case "Tuple", "List":
		return c.unpack(n.kids[0].kids)
	}
	panic(c.unsupported(n))
}

func (c *compiler) storeName(name string) func(*frame, value) {
	if v := c.resolve(name); v != nil {
		return func(f *frame, x value) {
			if v.cell {
				shared := f.locals[v.slot].(*cell)
				old := shared.value
				shared.value = x
				f.m.drop(old)
				return
			}
			old := f.locals[v.slot]
			f.locals[v.slot] = x
			if old != nil {
				f.m.drop(old)
			}
		}
	}
	if c.kind == classScope {
		return func(f *frame, x value) { f.names.class.set(name, x) }
	}
	return func(f *frame, x value) {
		old := f.globals.names[name]
		f.globals.names[name] = x
		f.m.drop(old)
	}
}

// unpack is UNPACK_SEQUENCE, or UNPACK_EX: the sequence goes before its elements are
// stored.
func (c *compiler) unpack(targets []*node) func(*frame, value) {
	stores := make([]func(*frame, value), len(targets))
	star := -1
	for i, t := range targets {
		if t.kind == "Starred" {
			star, t = i, t.kids[0]
		}
		stores[i] = c.store(t)
	}
	return func(f *frame, v value) {
		items := f.m.listOf(v)
		f.m.drop(v)
		if star >= 0 && len(items) >= len(stores)-1 {
			n := len(items) - len(stores) + 1
			middle := newList(append([]value(nil), items[star:star+n]...)...)
			items = append(append(append([]value(nil), items[:star]...), middle), items[star+n:]...)
		}
		if len(items) != len(stores) {
			panic(raise("ValueError", "cannot unpack %d values into %d", len(items), len(stores)))
		}
		for i, store := range stores {
			store(f, items[i])
		}
	}
}

// annotated is a declaration, with a value or without one.
func (c *compiler) annotated(n *node) statement {
	target, inClass := n.kids[0], c.kind == classScope
	if inClass && target.kind == "Name" {
		name := target.text
		if n.kids[1] == nil {
			return func(f *frame) signal { f.names.class.declare(name); return onward }
		}
		x := c.expr(n.kids[1])
		return func(f *frame) signal {
			f.names.class.declare(name)
			f.names.class.set(name, x(f))
			return onward
		}
	}
	if n.kids[1] == nil {
		return nil
	}
	return c.assignment([]*node{target}, c.expr(n.kids[1]))
}

func (c *class) declare(name string) {
	for _, k := range c.fields {
		if k == name {
			return
		}
	}
	c.fields = append(c.fields, name)
}

func (c *compiler) augmented(n *node) statement {
	target, op := n.kids[0], n.text
	switch target.kind {
	case "Name":
		load, x := c.expr(target), c.expr(n.kids[1])
		store := c.storeName(target.text)
		return func(f *frame) signal {
			a := load(f)
			b := x(f)
			out := f.m.binaryInPlace(op, a, b)
			f.m.drop(a)
			f.m.drop(b)
			store(f, out)
			return onward
		}
	case "Attribute":
		object, name, x := c.expr(target.kids[0]), target.text, c.expr(n.kids[1])
		return func(f *frame) signal {
			o := object(f)
			a := f.m.getattr(o, name)
			b := x(f)
			out := f.m.binaryInPlace(op, a, b)
			f.m.drop(a)
			f.m.drop(b)
			f.m.setattr(o, name, out)
			f.m.drop(o)
			return onward
		}
	}
	object, index, x := c.expr(target.kids[0]), c.expr(target.kids[1]), c.expr(n.kids[1])
	return func(f *frame) signal {
		o := object(f)
		i := index(f)
		a := f.m.item(o, i)
		b := x(f)
		out := f.m.binaryInPlace(op, a, b)
		f.m.drop(a)
		f.m.drop(b)
		f.m.setItem(o, i, out)
		f.m.drop(o)
		f.m.drop(i)
		return onward
	}
}

func (c *compiler) deletes(targets []*node) statement {
	var all []func(f *frame)
	for _, t := range targets {
		switch t.kind {
		case "Name":
			store := c.storeName(t.text)
			name, isLocal := t.text, c.resolve(t.text) != nil
			all = append(all, func(f *frame) {
				switch {
				case isLocal:
					store(f, nil)
				case f.names != nil:
					delete(f.names.class.attrs, name)
				default:
					v := f.globals.names[name]
					delete(f.globals.names, name)
					f.m.drop(v)
				}
			})
		case "Attribute":
			object, name := c.expr(t.kids[0]), t.text
			all = append(all, func(f *frame) {
				x := object(f)
				if i, ok := x.(*instance); !ok || !i.fields.remove(f.m, name) {
					panic(noAttribute(x, name))
				}
				f.m.drop(x)
			})
		case "Subscript":
			object, index := c.expr(t.kids[0]), c.expr(t.kids[1])
			all = append(all, func(f *frame) {
				x, i := object(f), index(f)
				d, ok := x.(*dict)
				if !ok {
					panic(failure("del of an element of a %s", typeName(x)))
				}
				v, ok := d.remove(f.m, i)
				if !ok {
					panic(raise("KeyError", "%v", i))
				}
				f.m.drop(v)
				f.m.drop(x)
				f.m.drop(i)
			})
		default:
			panic(c.unsupported(t))
		}
	}
	return func(f *frame) signal {
		for _, del := range all {
			del(f)
		}
		return onward
	}
}
