package pymodule

import (
	"slices"
	"strings"
)

// This file compiles what makes functions and classes, and what imports.

// function compiles a function, and what makes one at run time.
func (c *compiler) function(name string, n, arguments *node, body func(*compiler) (statement, expression)) expression {
	inner := &compiler{newScope(c.scope, functionScope, c.file)}
	made := &code{name: name, file: c.file, line: n.line}
	var defaults, byName []expression
	if arguments != nil {
		k := arguments.kids // posonlyargs, args, vararg, kwonlyargs, kw_defaults, kwarg, defaults
		for _, a := range slices.Concat(k[0].kids, k[1].kids) {
			made.params = append(made.params, a.text)
		}
		made.positional = len(made.params)
		for _, a := range k[3].kids {
			made.params = append(made.params, a.text)
		}
		for _, p := range made.params {
			inner.param(p)
		}
		for i, special := range []*node{k[2], k[5]} {
			if special != nil {
				inner.param(special.text)
				made.rest, made.keywords = made.rest || i == 0, made.keywords || i == 1
			}
		}
		for _, d := range k[6].kids {
			defaults = append(defaults, c.expr(d))
		}
		for _, d := range k[4].kids {
			var x expression
			if d != nil {
				x = c.expr(d)
			}
			byName = append(byName, x)
		}
	}
	made.body, made.makesValue = body(inner)
	made.slots = inner.settle()
	for i, v := range inner.order {
		switch {
		case !v.cell:
		case i < inner.params:
			made.args = append(made.args, v)
		default:
			made.cells = append(made.cells, v)
		}
	}
	made.frees = inner.frees
	return func(f *frame) value {
		fn := &function{refs: refs{1}, code: made, globals: f.globals, owner: f.owner}
		for _, d := range defaults {
			fn.defaults = append(fn.defaults, d(f))
		}
		for _, d := range byName {
			var v value
			if d != nil {
				v = d(f)
			}
			fn.byName = append(fn.byName, v)
		}
		for _, v := range made.frees {
			fn.closure = append(fn.closure, hold(f.locals[v.outer.slot]).(*cell))
		}
		return fn
	}
}

// define is def, with its decorators.
func (c *compiler) define(n *node) statement {
	decorators := c.exprs(n.kids[len(n.kids)-1].kids)
	body := n.kids[1].kids
	make := c.function(n.text, n, n.kids[0], func(inner *compiler) (statement, expression) {
		inner.bindAll(body)
		if yields(body) {
			err := &Error{c.file, n.line, "the generator " + n.text + " is not known"}
			return func(*frame) signal { panic(err) }, nil
		}
		return inner.block(body), nil
	})
	store := c.storeName(n.text)
	return func(f *frame) signal {
		called := evaluateAll(f, decorators)
		v := make(f)
		store(f, f.m.decorate(called, v))
		return onward
	}
}

func evaluateAll(f *frame, list []expression) []value {
	out := make([]value, len(list))
	for i, x := range list {
		out[i] = x(f)
	}
	return out
}

// decorate calls decorators, the last one first.
func (m *Machine) decorate(with []value, v value) value {
	for _, d := range slices.Backward(with) {
		v = m.call(d, v)
		m.drop(d)
	}
	return v
}

func yields(list []*node) bool {
	return slices.ContainsFunc(list, func(n *node) bool {
		if n == nil || n.kind == "FunctionDef" || n.kind == "Lambda" {
			return false
		}
		return n.kind == "Yield" || n.kind == "YieldFrom" || yields(n.kids)
	})
}

// classBody is a class while its body runs.
type classBody struct{ class *class }

func (c *compiler) defineClass(n *node) statement {
	bases, body := c.exprs(n.kids[0].kids), n.kids[2].kids
	decorators := c.exprs(n.kids[3].kids)
	inner := &compiler{newScope(c.scope, classScope, c.file)}
	made := &code{name: n.text, file: c.file, line: n.line, body: inner.block(body)}
	made.slots = inner.settle()
	made.frees = inner.frees
	store, file := c.storeName(n.text), strings.TrimSuffix(strings.ReplaceAll(c.file, "/", "."), ".py")
	return func(f *frame) signal {
		called := evaluateAll(f, decorators)
		k := newClass(n.text, f.m.baseClasses(evaluateAll(f, bases))...)
		k.file = file
		body := &frame{m: f.m, code: made, globals: f.globals, owner: k, names: &classBody{k}, line: n.line, back: f, locals: make([]value, made.slots)}
		for _, v := range made.frees {
			body.locals[v.slot] = hold(f.locals[v.outer.slot])
		}
		f.m.frame = body
		made.body(body)
		f.m.frame = f
		f.m.finishClass(k)
		store(f, f.m.decorate(called, k))
		return onward
	}
}

func (m *Machine) baseClasses(list []value) []*class {
	var out []*class
	for _, v := range list {
		switch b := v.(type) {
		case *class:
			out = append(out, b)
		case *unknown: // what is not known of it fails where it is used
			out = append(out, m.placeholder(b))
		default:
			panic(failure("a class is derived from a %s", typeName(v)))
		}
	}
	if len(out) == 0 {
		out = []*class{m.types["object"]}
	}
	return out
}

// placeholder is a class of which nothing is known but its name.
func (m *Machine) placeholder(u *unknown) *class {
	if m.placeholders[u.what] == nil {
		m.placeholders[u.what] = newClass(u.what, m.types["object"])
	}
	return m.placeholders[u.what]
}

// finishClass tells the bases of a new class: __init_subclass__.
func (m *Machine) finishClass(k *class) {
	if f := lookupIn(k.mro[1:], "__init_subclass__"); f != nil {
		m.drop(m.call(f, k))
	}
}

// absent are packages that models can do without, and that are not there.
var absent = []string{"apex"}

// imports binds names to what modules have, when it is asked for.
func (c *compiler) imports(n *node) statement {
	var all []func(f *frame)
	if top, _, _ := strings.Cut(n.text, "."); slices.Contains(absent, top) {
		return func(*frame) signal { panic(raise("ImportError", "No module named '%s'", top)) }
	}
	for _, alias := range n.kids[0].kids {
		name, as, _ := strings.Cut(alias.text, ",")
		store := c.storeName(aliasName(alias))
		if n.kind == "Import" {
			if as == "" {
				name, _, _ = strings.Cut(name, ".")
			}
			all = append(all, func(f *frame) { store(f, f.m.module(name)) })
			continue
		}
		from, local := n.text, c.kind != moduleScope
		all = append(all, func(f *frame) {
			v := value(&lazyImport{f.globals.absolute(from), name})
			if local {
				v = hold(f.m.resolveImport(v.(*lazyImport)))
			}
			store(f, v)
		})
	}
	return func(f *frame) signal {
		for _, bind := range all {
			bind(f)
		}
		return onward
	}
}
