package pymodule

import (
	"slices"

	"memorymark/internal/torch"
)

// code is what a function, a class body or a module does, compiled once and shared
// by all processes.
type code struct {
	name, file string
	line       int
	params     []string // that may be given by position, then those by name alone
	positional int      // of params
	rest       bool     // *args
	keywords   bool     // **kwargs
	slots      int
	args       []*variable // that are shared
	cells      []*variable // others that are
	frees      []*variable
	body       statement
	makesValue expression // of a lambda, or what a comprehension gives
}

// frame is a running function.
type frame struct {
	m       *Machine
	code    *code
	locals  []value
	globals *namespace
	owner   *class     // that the function was written in
	names   *classBody // of a class body
	line    int
	result  value
	back    *frame
}

// function is a Python function.
type function struct {
	refs
	code     *code
	globals  *namespace
	closure  []*cell
	defaults []value // of the last positional parameters
	byName   []value // defaults of those by name alone, nil for none
	owner    *class
	fields   fields
}

func (f *function) free(m *Machine) {
	m.dropAll(f.defaults)
	m.dropAll(f.byName)
	for _, c := range slices.Backward(f.closure) {
		m.drop(c)
	}
	m.dropAll(f.fields.values)
}

// builtin is a function that Go has. It borrows its arguments, and what it returns
// is the caller's.
type builtin struct {
	name string
	call func(m *Machine, a *args) value
}

// args are the arguments of a call.
type args struct {
	pos   []value
	names []string
	named []value
}

// method is a function bound to an object.
type method struct {
	refs
	self value
	f    value
}

func (x *method) free(m *Machine) { // method_dealloc
	m.drop(x.f)
	m.drop(x.self)
}

// named returns an argument by its name, or by its place; nil if it is not given.
func (a *args) get(i int, name string) value {
	if i >= 0 && i < len(a.pos) {
		return a.pos[i]
	}
	for j, n := range a.names {
		if n == name {
			return a.named[j]
		}
	}
	return nil
}

// or is get of an argument that may be missing or None.
func (a *args) or(i int, name string, otherwise value) value {
	if v := a.get(i, name); v != nil && v != (none{}) {
		return v
	}
	return otherwise
}

// need is get of an argument that must be there.
func (a *args) need(i int, name string) value {
	if v := a.get(i, name); v != nil {
		return v
	}
	panic(raise("TypeError", "missing argument: '%s'", name))
}

// only fails if there are keywords other than these.
func (a *args) only(function string, names ...string) {
	for _, n := range a.names {
		if !slices.Contains(names, n) {
			panic(failure("the argument %s of %s is not known", n, function))
		}
	}
}

// call calls with arguments that the caller gives away.
func (m *Machine) call(f value, pos ...value) value {
	return m.callOwned(f, args{pos: pos})
}

// invoke calls with arguments that stay the caller's.
func (m *Machine) callMethod(x value, name string, pos ...value) value {
	f := m.getattr(x, name)
	defer m.drop(f)
	return m.call(f, pos...)
}

func (m *Machine) invoke(f value, a *args) value {
	for _, v := range a.pos {
		hold(v)
	}
	for _, v := range a.named {
		hold(v)
	}
	return m.callOwned(f, *a)
}

// callOwned calls with arguments that the caller gives away: a Python function takes
// them for its names, everything else has them until it returns. The function
// itself stays the caller's.
func (m *Machine) callOwned(f value, a args) value {
	switch f := f.(type) {
	case *function:
		return m.run(f, a)
	case *builtin:
		given := m.newArgs(a)
		out := f.call(m, given)
		m.freeArgs = append(m.freeArgs, given)
		m.dropAll(a.pos)
		m.dropAll(a.named)
		return out
	case *method:
		top := m.top
		a.pos = m.withFirst(hold(f.self), a.pos)
		out := m.callOwned(f.f, a)
		m.backTo(top)
		return out
	case *class:
		given := m.newArgs(a)
		out := m.instantiate(f, given)
		m.freeArgs = append(m.freeArgs, given)
		m.dropAll(a.pos)
		m.dropAll(a.named)
		return out
	case *instance:
		callee := f.class.lookup("__call__")
		if callee == nil {
			panic(raise("TypeError", "'%s' object is not callable", f.class.name))
		}
		// slot_tp_call: the arguments are in a tuple until it returns.
		top := m.top
		given := m.newArgs(args{m.withFirst(f, a.pos), a.names, a.named})
		out := m.invoke(callee, given)
		m.freeArgs = append(m.freeArgs, given)
		m.backTo(top)
		m.dropAll(a.pos)
		m.dropAll(a.named)
		return out
	case *staticMethod:
		return m.callOwned(f.f, a)
	case *partial:
		out := m.invoke(f.f, f.withKept(a))
		m.dropAll(a.pos)
		m.dropAll(a.named)
		return out
	case *lossCall:
		frame := m.t.Enter().In("loss_function")
		out := m.callOwned(f.f, a)
		frame.End()
		return out
	case *region:
		return f.around(a.pos[0])
	case *unknown:
		f.fail()
	}
	panic(raise("TypeError", "'%s' object is not callable", typeName(f)))
}

// run runs a Python function. Its arguments become its names.
func (m *Machine) run(fn *function, a args) value {
	m.spend(callWork)
	c := fn.code
	f := m.newFrame()
	*f = frame{m: m, code: c, globals: fn.globals, owner: fn.owner, line: c.line, back: m.frame, locals: m.space(c.slots)}
	top := m.top - c.slots
	m.bind(f, fn, a)
	for i, v := range c.frees {
		f.locals[v.slot] = hold(fn.closure[i])
	}
	if m.depth++; m.depth > maxDepth {
		panic(raise("RecursionError", "maximum recursion depth exceeded"))
	}
	m.frame = f
	var again *torch.Frame
	if m.t != nil && m.t.RunsAgain() {
		again = m.t.Enter().Naming(f.tensors)
	}
	if c.makesValue != nil {
		f.result = c.makesValue(f)
	} else {
		c.body(f)
	}
	if f.result == nil {
		f.result = none{}
	}
	for i, v := range f.locals {
		if v != nil {
			f.locals[i] = nil
			m.drop(v)
		}
	}
	if again != nil {
		again.End()
	}
	m.top = top
	m.depth--
	m.frame = f.back
	result := f.result
	m.freeFrames = append(m.freeFrames, f)
	return result
}

// withFirst are arguments with another before them, on the stack.
func (m *Machine) withFirst(first value, pos []value) []value {
	out := m.space(len(pos) + 1)
	out[0] = first
	copy(out[1:], pos)
	return out
}

// backTo takes the stack back to where it was.
func (m *Machine) backTo(top int) {
	clear(m.stack[top:m.top])
	m.top = top
}

// newFrame and newArgs return what a call is done with, or something new: a call that
// does not return gives nothing back.
func (m *Machine) newFrame() *frame {
	last := len(m.freeFrames) - 1
	if last < 0 {
		return new(frame)
	}
	f := m.freeFrames[last]
	m.freeFrames = m.freeFrames[:last]
	return f
}

func (m *Machine) newArgs(a args) *args {
	last := len(m.freeArgs) - 1
	var p *args
	if last < 0 {
		p = new(args)
	} else {
		p = m.freeArgs[last]
		m.freeArgs = m.freeArgs[:last]
	}
	*p = a
	return p
}

// maxDepth is how deep functions may call each other.
const maxDepth = 1000

// space is where the names of a function are while it runs.
func (m *Machine) space(n int) []value {
	m.top += n
	if m.top > len(m.stack) {
		m.stack = make([]value, 2*m.top+4096) // frames that run keep theirs
	}
	return m.stack[m.top-n : m.top : m.top]
}

// bind gives parameters their values.
func (m *Machine) bind(f *frame, fn *function, a args) {
	c := fn.code
	n := copy(f.locals[:c.positional], a.pos)
	at := len(c.params)
	if c.rest {
		f.locals[at] = newTuple(slices.Clone(a.pos[n:])...)
		at++
	} else if n < len(a.pos) {
		panic(raise("TypeError", "%s() takes %d positional arguments but %d were given", c.name, c.positional, len(a.pos)))
	}
	var extra *dict
	if c.keywords {
		extra = newDict()
		f.locals[at] = extra
	}
	for i, name := range a.names {
		switch p := slices.Index(c.params, name); {
		case p >= 0 && f.locals[p] == nil:
			f.locals[p] = a.named[i]
		case p >= 0:
			panic(raise("TypeError", "%s() got multiple values for argument '%s'", c.name, name))
		case extra != nil:
			extra.set(m, name, a.named[i])
		default:
			panic(raise("TypeError", "%s() got an unexpected keyword argument '%s'", c.name, name))
		}
	}
	for i := range c.params {
		if f.locals[i] != nil {
			continue
		}
		var v value
		if i >= c.positional {
			v = fn.byName[i-c.positional]
		} else if d := i - (c.positional - len(fn.defaults)); d >= 0 {
			v = fn.defaults[d]
		}
		if v == nil {
			panic(raise("TypeError", "%s() missing 1 required argument: '%s'", c.name, c.params[i]))
		}
		f.locals[i] = hold(v)
	}
	for _, v := range c.args {
		f.locals[v.slot] = &cell{refs{1}, f.locals[v.slot]}
	}
	for _, v := range c.cells {
		f.locals[v.slot] = &cell{refs: refs{1}}
	}
}
