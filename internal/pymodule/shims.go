package pymodule

import (
	"math"
	"slices"
	"strings"
)

// This file is what models take from other modules of Python: numpy, inspect, itertools.

func nothingName(*Machine, string, string) value { return nil }

// operatorName is Python's operators as functions.
func operatorName(_ *Machine, _, name string) value {
	op := map[string]string{"mul": "Mult", "add": "Add", "sub": "Sub", "floordiv": "FloorDiv"}[name]
	if op == "" {
		return nil
	}
	return &builtin{name, func(m *Machine, a *args) value { return m.binary(op, a.pos[0], a.pos[1]) }}
}

// generationName is what models keep of transformers.generation, which training does not
// look at.
func generationName(m *Machine, _, name string) value {
	switch name {
	case "GenerationConfig":
		c := newClass(name, m.types["object"])
		c.attrs["from_model_config"] = &classMethod{constantly(none{})}
		return c
	case "GenerationMixin":
		return nil
	}
	return nil
}

// dynamoName is torch._dynamo, which does nothing unless a model is compiled.
func dynamoName(_ *Machine, _, name string) value {
	if name == "TransformGetItemToIndex" {
		return constantly(&region{run: func(_ *Machine, body func()) { body() }})
	}
	return constantly(none{})
}

func warningsName(_ *Machine, _, name string) value {
	switch name {
	case "warn", "simplefilter", "filterwarnings":
		return constantly(none{})
	}
	return nil
}

func linalgName(_ *Machine, _, name string) value {
	switch name {
	case "norm", "vector_norm":
		return tensorMethods["norm"]
	case "solve_triangular":
		return &builtin{name, func(m *Machine, a *args) value {
			return m.tensor(m.t.SolveTriangular(in(a.pos[0]), in(a.pos[1])))
		}}
	}
	return nil
}

// numpyName is what of numpy models compute numbers with.
func numpyName(m *Machine, _, name string) value {
	switch name {
	case "pi":
		return math.Pi
	case "inf":
		return math.Inf(1)
	case "prod":
		return mathName(m, "math", "prod")
	case "newaxis":
		return none{}
	case "float32", "float64":
		return m.types["float"]
	case "int64", "int32":
		return m.types["int"]
	case "lcm":
		return &builtin{name, func(_ *Machine, a *args) value {
			x, y := integer(a.pos[0]), integer(a.pos[1])
			g := integer(mathName(nil, "math", "gcd").(*builtin).call(nil, &args{pos: []value{x, y}}))
			return x / g * y
		}}
	case "linspace": // a list of numbers
		return &builtin{name, func(_ *Machine, a *args) value {
			from, to, n := number(a.pos[0]), number(a.pos[1]), integer(a.pos[2])
			l := newList()
			for i := range n {
				l.items = append(l.items, from+(to-from)*float64(i)/math.Max(float64(n-1), 1))
			}
			return l
		}}
	case "array", "asarray":
		return &builtin{name, func(m *Machine, a *args) value {
			return m.tensorOf(&args{a.pos[:1], []string{"device"}, []value{device{true}}})
		}}
	case "power":
		return &builtin{name, func(_ *Machine, a *args) value { return math.Pow(number(a.pos[0]), number(a.pos[1])) }}
	case "sqrt", "log", "log2", "exp", "cos", "sin", "tanh", "log10":
		return &builtin{name, func(m *Machine, a *args) value {
			if x, ok := a.pos[0].(*tensor); ok {
				return hold(x)
			}
			return mathName(m, "math", name).(*builtin).call(m, a)
		}}
	case "floor", "ceil":
		return &builtin{name, func(_ *Machine, a *args) value {
			if name == "ceil" {
				return math.Ceil(number(a.pos[0]))
			}
			return math.Floor(number(a.pos[0]))
		}}
	}
	return nil
}

// remembered is a function whose results are kept by its arguments (functools.lru_cache).
func remembered(f value) value {
	return &builtin{"lru_cache", func(m *Machine, a *args) value { return m.invoke(f, a) }}
}

// autogradName is torch.autograd.
func autogradName(m *Machine, _, name string) value {
	switch name {
	case "Function":
		return m.types["autograd.Function"]
	case "function":
		return m.module("torch.autograd.function")
	}
	return nil
}

func inspectName(_ *Machine, _, name string) value {
	if name != "signature" {
		return nil
	}
	return &builtin{name, func(m *Machine, a *args) value { return &signature{m.parametersOf(a.pos[0])} }}
}

// signature is inspect.signature of a function or of a configuration's constructor.
type signature struct{ names []string }

func (s *signature) attribute(_ *Machine, name string) value {
	if name != "parameters" {
		return nil
	}
	d := newDict()
	for _, n := range s.names {
		d.set(nil, n, none{})
	}
	return d
}

// parametersOf are the names of what can be given to a function.
func (m *Machine) parametersOf(v value) []string {
	switch f := v.(type) {
	case *function:
		return f.code.params
	case *method:
		if own, ok := f.f.(*function); ok {
			return own.code.params[1:]
		}
		return m.parametersOf(f.f)
	case *configInit:
		var names []string
		for _, k := range f.class.mro {
			names = append(names, k.fields...)
		}
		return names
	case *class:
		if own, ok := f.lookup("__init__").(*function); ok {
			return own.code.params[1:]
		}
	case *builtin:
		return nil
	}
	panic(failure("the signature of a %s is not known", typeName(v)))
}

// configInit is the __init__ that @dataclass writes for a configuration.
type configInit struct{ class *class }

// precomputed is accepts_precomputed_kwargs of a modality.
type precomputed string

func (p precomputed) wrap(_ *Machine, a *args) value {
	f := hold(a.pos[0])
	return &builtin{"wrapper", func(m *Machine, a *args) value {
		known, given := m.parametersOf(f), &args{pos: a.pos}
		for i, n := range a.names {
			own, mine := strings.CutPrefix(n, string(p)+"_")
			switch {
			case mine && !slices.Contains(known, n):
				n = own
			case !mine && (strings.HasPrefix(n, "image_") || strings.HasPrefix(n, "video_") || strings.HasPrefix(n, "audio_")):
				continue
			}
			given.names, given.named = append(given.names, n), append(given.named, a.named[i])
		}
		return m.invoke(f, given)
	}}
}

func itertoolsName(_ *Machine, _, name string) value {
	switch name {
	case "chain":
		return &builtin{name, func(m *Machine, a *args) value {
			l := newList()
			for _, v := range a.pos {
				l.items = append(l.items, m.listOf(v)...)
			}
			return l
		}}
	case "accumulate":
		return &builtin{name, func(m *Machine, a *args) value {
			l, sum := newList(), value(nil)
			for _, v := range m.listOf(a.pos[0]) {
				if sum == nil {
					sum = v
				} else {
					sum = m.binary("Add", sum, v)
				}
				l.items = append(l.items, hold(sum))
			}
			return l
		}}
	case "product":
		return &builtin{name, func(m *Machine, a *args) value {
			rows := [][]value{nil}
			for _, v := range a.pos {
				var next [][]value
				for _, row := range rows {
					for _, item := range m.listOf(v) {
						next = append(next, append(slices.Clone(row), item))
					}
				}
				rows = next
			}
			l := newList()
			for _, row := range rows {
				l.items = append(l.items, newTuple(holdAll(row)...))
			}
			return l
		}}
	case "cycle":
		return &builtin{name, func(m *Machine, a *args) value {
			items, i := m.listOf(a.pos[0]), -1
			return &iterator{refs: refs{1}, next: func() value { i++; return hold(items[i%len(items)]) }}
		}}
	case "repeat", "groupby":
		return &builtin{name, func(*Machine, *args) value { panic(failure("itertools.%s is not known", name)) }}
	}
	return nil
}

// namedTuple is collections.namedtuple.
func (m *Machine) namedTuple(a *args) value {
	var names []string
	if s, ok := a.pos[1].(string); ok {
		names = strings.Fields(strings.ReplaceAll(s, ",", " "))
	} else {
		for _, v := range m.listOf(a.pos[1]) {
			names = append(names, m.text(v))
		}
	}
	return &builtin{m.text(a.pos[0]), func(_ *Machine, a *args) value {
		t := newTuple()
		t.names = names
		for i, n := range names {
			t.items = append(t.items, hold(a.need(i, n)))
		}
		return t
	}}
}
