package pymodule

import (
	"math"
	"strconv"
	"strings"
)

// This file is what modules of Python's library have.

func mathName(_ *Machine, _, name string) value {
	switch name {
	case "e":
		return math.E
	case "gcd":
		return &builtin{name, func(_ *Machine, a *args) value {
			x, y := integer(a.pos[0]), integer(a.pos[1])
			for y != 0 {
				x, y = y, x%y
			}
			return x
		}}
	case "isqrt":
		return &builtin{name, func(_ *Machine, a *args) value { return int64(math.Sqrt(number(a.pos[0]))) }}
	case "pow":
		return &builtin{name, func(_ *Machine, a *args) value { return math.Pow(number(a.pos[0]), number(a.pos[1])) }}
	case "pi":
		return math.Pi
	case "inf":
		return math.Inf(1)
	}
	tests := map[string]func(float64) bool{
		"isfinite": func(x float64) bool { return !math.IsInf(x, 0) && !math.IsNaN(x) }, "isnan": math.IsNaN, "isinf": func(x float64) bool { return math.IsInf(x, 0) },
	}
	if f := tests[name]; f != nil {
		return &builtin{name, func(_ *Machine, a *args) value { return f(number(a.pos[0])) }}
	}
	functions := map[string]func(float64) float64{"sqrt": math.Sqrt, "log": math.Log, "log2": math.Log2, "log10": math.Log10, "tanh": math.Tanh, "fabs": math.Abs, "erf": math.Erf, "exp": math.Exp, "cos": math.Cos, "sin": math.Sin}
	if f := functions[name]; f != nil {
		return &builtin{name, func(_ *Machine, a *args) value {
			if len(a.pos) > 1 {
				return math.Log(number(a.pos[0])) / math.Log(number(a.pos[1]))
			}
			return f(number(a.pos[0]))
		}}
	}
	rounded := map[string]func(float64) float64{"floor": math.Floor, "ceil": math.Ceil, "trunc": math.Trunc}
	if f := rounded[name]; f != nil {
		return &builtin{name, func(_ *Machine, a *args) value { return int64(f(number(a.pos[0]))) }}
	}
	if name == "prod" {
		return &builtin{name, func(m *Machine, a *args) value {
			out := value(int64(1))
			for _, v := range m.listOf(a.pos[0]) {
				out = m.binary("Mult", out, v)
			}
			return out
		}}
	}
	return nil
}

// partial is functools.partial.
type partial struct {
	refs
	f    value
	pos  []value
	kept *dict
}

func (p *partial) free(m *Machine) { // partial_dealloc
	m.drop(p.f)
	m.dropBackwards(p.pos)
	m.drop(p.kept)
}

func functoolsName(_ *Machine, _, name string) value {
	switch name {
	case "wraps", "lru_cache", "cache":
		return &builtin{name, func(_ *Machine, a *args) value { return identity }}
	case "reduce":
		return &builtin{name, func(m *Machine, a *args) value {
			items := m.listOf(a.pos[1])
			if len(a.pos) > 2 {
				items = append([]value{hold(a.pos[2])}, items...)
			}
			out := items[0]
			for _, v := range items[1:] {
				out = m.call(a.pos[0], out, v)
			}
			return out
		}}
	case "cached_property":
		return &builtin{name, func(_ *Machine, a *args) value { return &property{get: hold(a.pos[0])} }}
	case "partial":
		return &builtin{name, func(m *Machine, a *args) value {
			p := &partial{refs: refs{1}, f: hold(a.pos[0]), pos: holdAll(a.pos[1:]), kept: newDict()}
			for i, n := range a.names {
				p.kept.set(m, n, hold(a.named[i]))
			}
			return p
		}}
	}
	return nil
}

// withKept are the arguments of a call with those that the partial has.
func (p *partial) withKept(a args) *args {
	out := &args{pos: append(append([]value{}, p.pos...), a.pos...), names: append([]string{}, a.names...), named: append([]value{}, a.named...)}
	for i, k := range p.kept.keys {
		if a.get(-1, k.(string)) == nil {
			out.names, out.named = append(out.names, k.(string)), append(out.named, p.kept.values[i])
		}
	}
	return out
}

func typingName(m *Machine, module, name string) value {
	switch {
	case name == "TYPE_CHECKING":
		return false
	case name == "Generic" || name == "Protocol" || name == "NamedTuple":
		return m.types["object"]
	case module == "typing" && name == "TypedDict":
		return m.types["dict"]
	case m.types["abc."+name] != nil:
		return m.types["abc."+name]
	case module == "typing" && (name == "overload" || name == "final"):
		return identity
	case module == "typing" && name == "cast":
		return &builtin{name, func(_ *Machine, a *args) value { return hold(a.pos[1]) }}
	case module == "typing" && name == "get_args":
		return &builtin{name, func(_ *Machine, a *args) value { return newTuple() }}
	}
	return nil
}

// addAbstract makes classes of collections.abc: what an object can do decides.
func (m *Machine) addAbstract() {
	is := func(name string, holds func(v value) bool) {
		c := newClass(name, m.types["object"])
		c.holds = holds
		m.types["abc."+name] = c
	}
	is("Iterable", func(v value) bool {
		switch x := v.(type) {
		case *tuple, *list, *dict, string, *span, *iterator, *tensor:
			return true
		case *instance:
			return x.class.lookup("__iter__") != nil || x.items != nil
		}
		return false
	})
	is("Sequence", func(v value) bool {
		switch v.(type) {
		case *tuple, *list, string, *span:
			return true
		}
		return false
	})
	mapping := func(v value) bool {
		switch x := v.(type) {
		case *dict:
			return !x.isSet
		case *instance:
			return x.items != nil
		}
		return false
	}
	is("Mapping", mapping)
	is("MutableMapping", mapping)
	is("Callable", func(v value) bool {
		switch x := v.(type) {
		case *function, *builtin, *method, *class, *partial:
			return true
		case *instance:
			return x.class.lookup("__call__") != nil
		}
		return false
	})
}

func collectionsName(m *Machine, _, name string) value {
	switch name {
	case "OrderedDict":
		return m.types[name]
	case "UserDict":
		return m.types["dict"]
	case "abc":
		return m.module("collections.abc")
	case "defaultdict":
		return &builtin{name, func(_ *Machine, a *args) value {
			d := newDict()
			d.fresh = hold(a.pos[0])
			return d
		}}
	case "namedtuple":
		return &builtin{name, func(m *Machine, a *args) value { return m.namedTuple(a) }}
	}
	return nil
}

func abcName(m *Machine, _, name string) value {
	switch name {
	case "ABC":
		return m.types["object"]
	case "abstractmethod":
		return identity
	}
	return nil
}

func copyName(_ *Machine, _, name string) value {
	if name == "deepcopy" || name == "copy" {
		return &builtin{name, func(m *Machine, a *args) value { return m.copied(a.pos[0]) }}
	}
	return nil
}

// copied is copy.deepcopy of data and of configurations.
func (m *Machine) copied(v value) value {
	switch x := v.(type) {
	case *list:
		l := newList()
		for _, item := range x.items {
			l.items = append(l.items, m.copied(item))
		}
		return l
	case *dict:
		d := newDict()
		d.isSet = x.isSet
		for i, k := range x.keys {
			d.set(m, hold(k), m.copied(x.values[i]))
		}
		return d
	case *instance:
		if x.isModule() {
			return m.copyModule(x, make(map[any]value))
		}
		if x.native != nil {
			panic(failure("a copy of a %s is not known", x.class.name))
		}
		c := &instance{refs: refs{1}, class: x.class}
		for i, name := range x.fields.names {
			c.fields.set(m, name, m.copied(x.fields.values[i]))
		}
		return c
	case *tensor:
		panic(failure("a copy of a tensor is not known"))
	}
	return hold(v)
}

// version is packaging.version.Version.
type version [3]int

func parseVersion(s string) version {
	var v version
	for i, part := range strings.SplitN(s, ".", 3) {
		v[i], _ = strconv.Atoi(part)
	}
	return v
}

func (v version) compare(other value) int {
	w, ok := other.(version)
	if !ok {
		panic(failure("a version compared with a %s", typeName(other)))
	}
	for i := range v {
		if v[i] != w[i] {
			return v[i] - w[i]
		}
	}
	return 0
}

func versionName(_ *Machine, _, name string) value {
	if name == "parse" || name == "Version" {
		return &builtin{name, func(m *Machine, a *args) value { return parseVersion(m.text(a.pos[0])) }}
	}
	return nil
}
