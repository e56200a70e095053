package pymodule

import (
	"strconv"
	"strings"
)

// This file compiles what makes containers and texts of their parts.

// display compiles what makes a container.
func (c *compiler) display(n *node) expression {
	switch n.kind {
	case "Tuple":
		items := c.elements(n.kids[0].kids)
		return func(f *frame) value { return newTuple(items(f, nil)...) }
	case "List":
		items := c.elements(n.kids[0].kids)
		return func(f *frame) value { return newList(items(f, nil)...) }
	case "Set":
		items := c.elements(n.kids[0].kids)
		return func(f *frame) value { return f.m.newSet(items(f, nil)) }
	case "Dict":
		return c.dict(n)
	case "ListComp", "SetComp", "GeneratorExp", "DictComp":
		return c.comprehension(n)
	}
	err := c.unsupported(n)
	return func(*frame) value { panic(err) }
}

func (m *Machine) newSet(items []value) *dict {
	d := newDict()
	d.isSet = true
	for _, v := range items {
		d.set(m, v, none{})
	}
	return d
}

func (c *compiler) dict(n *node) expression {
	var keys, values []expression
	for i, k := range n.kids[0].kids {
		var key expression
		if k != nil {
			key = c.expr(k)
		}
		keys, values = append(keys, key), append(values, c.expr(n.kids[1].kids[i]))
	}
	return func(f *frame) value {
		d := newDict()
		for i, x := range values {
			if keys[i] == nil {
				v := x(f)
				f.m.spread(d, v)
				f.m.drop(v)
				continue
			}
			k := keys[i](f)
			d.set(f.m, k, x(f))
		}
		return d
	}
}

// comprehension compiles a function of its own, which is called with the iterator
// of its first loop. A generator is run at once.
func (c *compiler) comprehension(n *node) expression {
	loops := n.kids[len(n.kids)-1].kids
	over := c.expr(loops[0].kids[1])
	kind := n.kind
	inner := &node{kind: "arguments", kids: []*node{{kind: "list"}, {kind: "list", kids: []*node{{kind: "arg", text: ".0"}}}, nil, {kind: "list"}, {kind: "list"}, nil, {kind: "list"}}}
	make := c.function("<"+strings.ToLower(kind)+">", n, inner, func(in *compiler) (statement, expression) {
		for _, l := range loops {
			in.bindTarget(l.kids[0])
		}
		return nil, in.gather(n, loops)
	})
	return func(f *frame) value {
		fn := make(f)
		v := over(f)
		it := f.m.iterate(v)
		f.m.drop(v)
		out := f.m.call(fn, it)
		f.m.drop(fn)
		if kind == "GeneratorExp" {
			l := out.(*list)
			it := f.m.iterate(l)
			f.m.drop(l)
			return it
		}
		return out
	}
}

// gather runs the loops of a comprehension.
func (c *compiler) gather(n *node, loops []*node) expression {
	var add func(f *frame, into value)
	type round struct {
		over  expression
		store func(*frame, value)
		ifs   []func(*frame) bool
	}
	var rounds []round
	for i, l := range loops {
		var r round
		if r.over = c.peek(".0"); i > 0 {
			r.over = c.expr(l.kids[1])
		}
		r.store = c.store(l.kids[0])
		for _, k := range l.kids[2].kids {
			r.ifs = append(r.ifs, c.condition(k))
		}
		rounds = append(rounds, r)
	}
	if n.kind == "DictComp" {
		key, v := c.expr(n.kids[0]), c.expr(n.kids[1])
		add = func(f *frame, into value) {
			k := key(f)
			into.(*dict).set(f.m, k, v(f))
		}
	} else {
		x := c.expr(n.kids[0])
		add = func(f *frame, into value) {
			if l, ok := into.(*list); ok {
				l.items = append(l.items, x(f))
				return
			}
			into.(*dict).set(f.m, x(f), none{})
		}
	}
	var run func(f *frame, i int, into value)
	run = func(f *frame, i int, into value) {
		if i == len(rounds) {
			add(f, into)
			return
		}
		r := &rounds[i]
		v := r.over(f)
		it := f.m.iterate(v)
	next:
		for x := it.next(); x != nil; x = it.next() {
			f.m.spend(roundWork + elementWork)
			r.store(f, x)
			for _, test := range r.ifs {
				if !test(f) {
					continue next
				}
			}
			run(f, i+1, into)
		}
		f.m.drop(it)
		if i > 0 {
			f.m.drop(v)
		}
	}
	return func(f *frame) value {
		var into value = newList()
		switch n.kind {
		case "DictComp":
			into = newDict()
		case "SetComp":
			into = f.m.newSet(nil)
		}
		run(f, 0, into)
		return into
	}
}

// joined is an f-string.
func (c *compiler) joined(n *node) expression {
	var parts []func(f *frame) string
	for _, k := range n.kids[0].kids {
		if k.kind == "Constant" {
			text := k.text[1:]
			parts = append(parts, func(*frame) string { return text })
			continue
		}
		x, conversion := c.expr(k.kids[0]), k.text
		spec := func(*frame) value { return "" }
		if k.kids[1] != nil {
			spec = c.expr(k.kids[1])
		}
		parts = append(parts, func(f *frame) string {
			v := x(f)
			defer f.m.drop(v)
			if conversion == strconv.Itoa('r') {
				return f.m.repr(v)
			}
			return f.m.format(v, spec(f).(string))
		})
	}
	return func(f *frame) value {
		var b strings.Builder
		for _, p := range parts {
			b.WriteString(p(f))
		}
		return b.String()
	}
}
