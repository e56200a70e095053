package pymodule

// This file compiles what decides how a function continues.

func (c *compiler) returns(n *node) statement {
	if n == nil {
		return func(f *frame) signal { f.result = none{}; return returned }
	}
	x := c.expr(n)
	return func(f *frame) signal { f.result = x(f); return returned }
}

func (c *compiler) ifs(n *node) statement {
	test, body, other := c.condition(n.kids[0]), c.block(n.kids[1].kids), c.block(n.kids[2].kids)
	return func(f *frame) signal {
		if test(f) {
			return body(f)
		}
		return other(f)
	}
}

func (c *compiler) while(n *node) statement {
	test, body := c.condition(n.kids[0]), c.block(n.kids[1].kids)
	return func(f *frame) signal {
		for test(f) {
			f.m.spend(roundWork)
			switch body(f) {
			case returned:
				return returned
			case broke:
				return onward
			}
		}
		return onward
	}
}

func (c *compiler) loop(n *node) statement {
	over := c.expr(n.kids[1])
	store := c.store(n.kids[0])
	body, other := c.block(n.kids[2].kids), c.block(n.kids[3].kids)
	line := n.line
	return func(f *frame) signal {
		v := over(f)
		it := f.m.iterate(v)
		f.m.drop(v)
		for {
			f.line = line
			x := it.next()
			if x == nil {
				f.m.drop(it)
				return other(f)
			}
			f.m.spend(roundWork)
			store(f, x)
			switch body(f) {
			case returned:
				f.m.drop(it)
				return returned
			case broke:
				f.m.drop(it)
				return onward
			}
		}
	}
}

func (c *compiler) asserts(n *node) statement {
	test := c.condition(n.kids[0])
	return func(f *frame) signal {
		if !test(f) {
			panic(raise("AssertionError", ""))
		}
		return onward
	}
}

func (c *compiler) raises(n *node) statement {
	if n.kids[0] == nil {
		return func(f *frame) signal { panic(failure("raise without an exception is not known")) }
	}
	x := c.expr(n.kids[0])
	return func(f *frame) signal { panic(f.m.exception(x(f))) }
}

// exception is what raise makes of a class or an object.
func (m *Machine) exception(v value) *raised {
	if k, ok := v.(*class); ok {
		v = m.instantiate(k, &args{})
	}
	x, ok := v.(*instance)
	if !ok || !x.class.is(m.types["BaseException"]) {
		panic(failure("a %s is raised", typeName(v)))
	}
	message := ""
	if a, ok := x.fields.get("args"); ok && len(a.(*tuple).items) > 0 {
		message = m.text(a.(*tuple).items[0])
	}
	return &raised{kind: x.class.name, message: message, object: x}
}

// try runs handlers by the classes of exceptions. What else stops a process passes.
func (c *compiler) try(n *node) statement {
	body := c.block(n.kids[0].kids)
	type handler struct {
		class expression
		store func(*frame, value)
		body  statement
	}
	var handlers []handler
	for _, h := range n.kids[1].kids {
		var made handler
		if h.kids[0] != nil {
			made.class = c.expr(h.kids[0])
		}
		if h.text != "" {
			made.store = c.storeName(h.text)
		}
		made.body = c.block(h.kids[1].kids)
		handlers = append(handlers, made)
	}
	other, final := c.block(n.kids[2].kids), c.block(n.kids[3].kids)
	return func(f *frame) signal {
		sig, x := f.attempt(body)
		if x == nil {
			sig = f.then(sig, other)
		}
		for _, h := range handlers {
			if x == nil {
				break
			}
			object := f.m.objectOf(x)
			if h.class != nil && !f.m.isInstance(object, h.class(f)) {
				continue
			}
			if h.store != nil {
				h.store(f, hold(object))
			}
			sig, x = f.attempt(h.body)
			if h.store != nil {
				h.store(f, nil)
			}
			break
		}
		if last := final(f); last != onward {
			return last
		}
		if x != nil {
			panic(x)
		}
		return sig
	}
}

func (f *frame) then(sig signal, next statement) signal {
	if sig != onward {
		return sig
	}
	return next(f)
}

// attempt runs a block and catches an exception; the names of functions that it
// passed go.
func (f *frame) attempt(body statement) (sig signal, caught *raised) {
	top, depth := f.m.top, f.m.depth
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		x, ok := r.(*raised)
		if !ok {
			panic(r)
		}
		for fr := f.m.frame; fr != f; fr = fr.back {
			f.m.dropAll(fr.locals)
			clear(fr.locals)
		}
		clear(f.m.stack[top:max(top, f.m.top)])
		f.m.top, f.m.depth, f.m.frame = top, depth, f
		caught = x
	}()
	return body(f), nil
}

// objectOf is the object of an exception.
func (m *Machine) objectOf(x *raised) *instance {
	if x.object == nil {
		k := m.types[x.kind]
		if k == nil {
			panic(failure("the exception %s is not known", x.kind))
		}
		x.object = &instance{refs: refs{1}, class: k}
		x.object.fields.set(m, "args", newTuple(x.message))
	}
	return x.object
}

// with enters its contexts one within the other.
func (c *compiler) with(items, body []*node) statement {
	if len(items) == 0 {
		return c.block(body)
	}
	context := c.expr(items[0].kids[0])
	store := func(f *frame, v value) { f.m.drop(v) }
	if items[0].kids[1] != nil {
		store = c.store(items[0].kids[1])
	}
	inner := c.with(items[1:], body)
	return func(f *frame) (sig signal) {
		v := context(f)
		switch x := v.(type) {
		case *region:
			x.run(f.m, func() {
				store(f, none{})
				sig = inner(f)
			})
		case *instance:
			store(f, f.m.call(f.m.getattr(x, "__enter__")))
			var caught *raised
			if sig, caught = f.attempt(inner); caught != nil {
				f.m.drop(f.m.call(f.m.getattr(x, "__exit__"), caught.object, caught.object, none{}))
				panic(caught)
			}
			f.m.drop(f.m.call(f.m.getattr(x, "__exit__"), none{}, none{}, none{}))
		default:
			panic(failure("with of a %s", typeName(v)))
		}
		f.m.drop(v)
		return sig
	}
}

// region is a context that Go has.
type region struct {
	run func(m *Machine, body func())
}
