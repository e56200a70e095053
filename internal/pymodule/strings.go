package pymodule

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// text is str(v).
func (m *Machine) text(v value) string {
	switch x := v.(type) {
	case string:
		return x
	case *instance:
		for _, name := range []string{"__str__", "__repr__"} {
			if f := x.class.lookup(name); f != nil {
				return m.call(f, hold(x)).(string)
			}
		}
		if a, ok := x.fields.get("args"); ok && x.class.is(m.types["BaseException"]) {
			if items := a.(*tuple).items; len(items) == 1 {
				return m.text(items[0])
			}
		}
	}
	return m.repr(v)
}

// repr is repr(v).
func (m *Machine) repr(v value) string {
	join := func(items []value) string {
		var parts []string
		for _, item := range items {
			parts = append(parts, m.repr(item))
		}
		return strings.Join(parts, ", ")
	}
	switch x := v.(type) {
	case none:
		return "None"
	case ellipsis:
		return "Ellipsis"
	case bool:
		if x {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(x, 10)
	case float64:
		return formatFloat(x)
	case string:
		return quote(x)
	case *tuple:
		if len(x.items) == 1 {
			return "(" + join(x.items) + ",)"
		}
		return "(" + join(x.items) + ")"
	case *list:
		return "[" + join(x.items) + "]"
	case *dict:
		var parts []string
		for i, k := range x.keys {
			if x.isSet {
				parts = append(parts, m.repr(k))
			} else {
				parts = append(parts, m.repr(k)+": "+m.repr(x.values[i]))
			}
		}
		if x.isSet && len(parts) == 0 {
			return "set()"
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case *class:
		return "<class '" + x.name + "'>"
	case dtype:
		return "torch." + x.name()
	case *instance:
		if f := x.class.lookup("__repr__"); f != nil {
			return m.call(f, hold(x)).(string)
		}
	}
	return "<" + typeName(v) + ">"
}

func quote(s string) string {
	mark := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		mark = `"`
	}
	return mark + strings.NewReplacer(`\`, `\\`, mark, `\`+mark, "\n", `\n`, "\t", `\t`).Replace(s) + mark
}

// format is format(v, spec).
func (m *Machine) format(v value, spec string) string {
	if spec == "" {
		return m.text(v)
	}
	verb := spec[len(spec)-1]
	if flags := spec[:len(spec)-1]; isNumber(v) && strings.ContainsRune("feg", rune(verb)) && strings.Trim(flags, ".0123456789") == "" {
		return fmt.Sprintf("%"+spec, number(v))
	}
	if verb == 'd' && strings.Trim(spec[:len(spec)-1], "0123456789") == "" {
		return fmt.Sprintf("%"+spec, integer(v))
	}
	panic(failure("the format %q is not known", spec))
}

// percent is s % v.
func (m *Machine) percent(s string, v value) value {
	items := []value{v}
	if t, ok := v.(*tuple); ok {
		items = t.items
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		switch verb := rest[:1]; {
		case verb == "%":
			b.WriteString("%")
		case (verb == "s" || verb == "d") && len(items) > 0:
			b.WriteString(m.text(items[0]))
			items = items[1:]
		default:
			panic(failure("the format %%%s is not known", verb))
		}
		s = rest[1:]
	}
}

// filled is s.format(...), of fields that are names, numbers or nothing.
func (m *Machine) filled(s string, a *args) string {
	next := 0
	return replacementField.ReplaceAllStringFunc(s, func(field string) string {
		switch name := strings.Trim(field, "{}"); {
		case field == "{{" || field == "}}":
			return field[:1]
		case name == "":
			next++
			return m.text(a.need(next-1, "field"))
		case name[0] >= '0' && name[0] <= '9':
			return m.text(a.need(int(number(parseFloat(name))), "field"))
		default:
			return m.text(a.need(-1, name))
		}
	})
}

var replacementField = regexp.MustCompile(`{{|}}|{\w*}`)

// parseFloat is float(s).
func parseFloat(s string) value {
	if x, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil || math.IsInf(x, 0) {
		return x
	}
	panic(raise("ValueError", "could not convert string to float: %s", quote(s)))
}

func stringMethods() map[string]*builtin {
	out := make(map[string]*builtin)
	add := func(name string, call func(m *Machine, s string, a *args) value) {
		out[name] = &builtin{name, func(m *Machine, a *args) value { return call(m, a.pos[0].(string), &args{a.pos[1:], a.names, a.named}) }}
	}
	add("join", func(m *Machine, s string, a *args) value {
		var parts []string
		for _, v := range m.listOf(a.pos[0]) {
			parts = append(parts, v.(string))
		}
		return strings.Join(parts, s)
	})
	add("split", func(_ *Machine, s string, a *args) value {
		var parts []string
		switch {
		case len(a.pos) == 0 || a.pos[0] == none{}:
			parts = strings.Fields(s)
		case len(a.pos) == 2:
			parts = strings.SplitN(s, a.pos[0].(string), int(integer(a.pos[1]))+1)
		default:
			parts = strings.Split(s, a.pos[0].(string))
		}
		l := newList()
		for _, p := range parts {
			l.items = append(l.items, p)
		}
		return l
	})
	affix := func(is func(s, part string) bool) func(*Machine, string, *args) value {
		return func(_ *Machine, s string, a *args) value {
			if t, ok := a.pos[0].(*tuple); ok {
				for _, p := range t.items {
					if is(s, p.(string)) {
						return true
					}
				}
				return false
			}
			return is(s, a.pos[0].(string))
		}
	}
	add("startswith", affix(strings.HasPrefix))
	add("endswith", affix(strings.HasSuffix))
	add("replace", func(_ *Machine, s string, a *args) value {
		return strings.ReplaceAll(s, a.pos[0].(string), a.pos[1].(string))
	})
	add("format", func(m *Machine, s string, a *args) value { return m.filled(s, a) })
	add("lower", func(_ *Machine, s string, _ *args) value { return strings.ToLower(s) })
	add("upper", func(_ *Machine, s string, _ *args) value { return strings.ToUpper(s) })
	trim := func(f func(s, cut string) string) func(*Machine, string, *args) value {
		return func(_ *Machine, s string, a *args) value {
			if len(a.pos) == 0 {
				return f(s, " \t\r\n")
			}
			return f(s, a.pos[0].(string))
		}
	}
	add("strip", trim(strings.Trim))
	add("lstrip", trim(strings.TrimLeft))
	add("rstrip", trim(strings.TrimRight))
	add("removeprefix", func(_ *Machine, s string, a *args) value { return strings.TrimPrefix(s, a.pos[0].(string)) })
	add("removesuffix", func(_ *Machine, s string, a *args) value { return strings.TrimSuffix(s, a.pos[0].(string)) })
	add("find", func(_ *Machine, s string, a *args) value { return int64(strings.Index(s, a.pos[0].(string))) })
	add("count", func(_ *Machine, s string, a *args) value { return int64(strings.Count(s, a.pos[0].(string))) })
	add("isdigit", func(_ *Machine, s string, _ *args) value {
		return s != "" && strings.Trim(s, "0123456789") == ""
	})
	return out
}
