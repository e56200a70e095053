package pymodule

import (
	"math"
	"slices"
	"strconv"
	"strings"
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

// display compiles what makes a container.
func (c *compiler) display(n *node) expression {
	switch n.kind {
	case "Tuple":
		items := c.elements(n.kids[0].kids)
		return func(f *frame) value { return newTuple(items(f)...) }
	case "List":
		items := c.elements(n.kids[0].kids)
		return func(f *frame) value { return newList(items(f)...) }
	case "Set":
		items := c.elements(n.kids[0].kids)
		return func(f *frame) value { return f.m.newSet(items(f)) }
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
			a := f.m.newArgs(args{pos: f.m.room(count + 1)[:0]})
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
		a := f.m.newArgs(args{pos: f.m.room(count)[:0]})
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
				a.names, a.named = names, f.m.room(len(values))
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
