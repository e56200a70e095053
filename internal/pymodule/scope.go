package pymodule

import (
	"slices"
)

// scope is where the names of a function, a class body or a module are.
type scope struct {
	parent  *scope
	kind    scopeKind
	file    string
	vars    map[string]*variable // that are bound here; those of a function
	globals map[string]bool      // declared to be the module's
	params  int
	order   []*variable // as they came up, parameters first
	frees   []*variable // of the functions around this one
}

type scopeKind int

const (
	moduleScope scopeKind = iota
	classScope
	functionScope
)

// variable is a name of a function. Its slot is known when all of the function is
// compiled: CPython lets names go in the order in which they come up in the source,
// and those that inner functions share after the others.
type variable struct {
	name  string
	slot  int
	shown bool      // has come up
	cell  bool      // is shared with an inner function
	outer *variable // of the function around, if it is from there
}

func newScope(parent *scope, kind scopeKind, file string) *scope {
	return &scope{parent: parent, kind: kind, file: file, vars: make(map[string]*variable), globals: make(map[string]bool)}
}

// param makes a parameter.
func (s *scope) param(name string) {
	v := &variable{name: name}
	s.vars[name] = v
	s.show(v)
	s.params++
}

func (s *scope) show(v *variable) {
	if !v.shown && v.outer == nil {
		v.shown = true
		s.order = append(s.order, v)
	}
}

// resolve returns the variable that a name is, nil for one of the module, the class
// body or Python itself.
func (s *scope) resolve(name string) *variable {
	if s.globals[name] {
		return nil
	}
	if v := s.vars[name]; v != nil {
		s.show(v)
		return v
	}
	if s.parent == nil {
		return nil
	}
	outer := s.parent.enclosing(name)
	if outer == nil {
		return nil
	}
	outer.cell = true
	v := &variable{name: name, cell: true, outer: outer}
	s.vars[name] = v
	s.frees = append(s.frees, v)
	return v
}

// enclosing is resolve for a function within: what a class body binds is not seen.
func (s *scope) enclosing(name string) *variable {
	if s.kind == moduleScope {
		return nil
	}
	return s.resolve(name)
}

// settle gives the variables their slots, and returns how many there are.
func (s *scope) settle() int {
	n := 0
	place := func(list []*variable, which func(i int, v *variable) bool) {
		for i, v := range list {
			if which(i, v) {
				v.slot = n
				n++
			}
		}
	}
	place(s.order, func(i int, v *variable) bool { return i < s.params || !v.cell })
	place(s.order, func(i int, v *variable) bool { return i >= s.params && v.cell })
	place(s.frees, func(int, *variable) bool { return true })
	return n
}

// bind declares the names that statements bind.
func (s *scope) bind(n *node) {
	if n == nil {
		return
	}
	switch n.kind {
	case "FunctionDef", "ClassDef":
		s.declare(n.text)
		s.bindAll(n.kids[len(n.kids)-1].kids) // decorators
		return
	case "Lambda":
		return
	case "ListComp", "SetComp", "GeneratorExp", "DictComp":
		s.bindWalrus(n)
		return
	case "Name":
		return
	case "Assign":
		for _, target := range n.kids[0].kids {
			s.bindTarget(target)
		}
	case "AugAssign", "AnnAssign", "For", "NamedExpr":
		s.bindTarget(n.kids[0])
	case "withitem":
		s.bindTarget(n.kids[1])
	case "Delete":
		for _, target := range n.kids[0].kids {
			s.bindTarget(target)
		}
	case "ExceptHandler":
		if n.text != "" {
			s.declare(n.text)
		}
	case "Import", "ImportFrom":
		for _, alias := range n.kids[0].kids {
			s.declare(aliasName(alias))
		}
		return
	case "Global":
		for _, name := range splitNames(n.text) {
			s.globals[name] = true
		}
	}
	s.bindAll(n.kids)
}

func (s *scope) bindAll(list []*node) {
	for _, n := range list {
		s.bind(n)
	}
}

func (s *scope) bindTarget(n *node) {
	switch {
	case n == nil:
	case n.kind == "Name":
		s.declare(n.text)
	case slices.Contains([]string{"Tuple", "List", "Starred", "list"}, n.kind):
		for _, k := range n.kids {
			s.bindTarget(k)
		}
	}
}

// bindWalrus declares what a comprehension binds in the function around it.
func (s *scope) bindWalrus(n *node) {
	if n == nil || n.kind == "Lambda" {
		return
	}
	if n.kind == "NamedExpr" {
		s.declare(n.kids[0].text)
	}
	for _, k := range n.kids {
		s.bindWalrus(k)
	}
}

func (s *scope) declare(name string) {
	if s.kind == functionScope && s.vars[name] == nil && !s.globals[name] {
		s.vars[name] = &variable{name: name}
	}
}
