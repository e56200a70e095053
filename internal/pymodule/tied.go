package pymodule

import (
	"regexp"
	"slices"
	"strings"
)

// tied is a parameter that becomes another one, by the names of both.
type tied struct{ target, source string }

// plainName matches names of parameters, which are no patterns.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.]+weight|bias$`)

// tiedOf expands the patterns of _tied_weights_keys, which match names from their beginning
// (get_expanded_tied_weights_keys, transformers/modeling_utils.py).
func (m *Machine) tiedOf(x *instance, keys *dict) (out []tied) {
	plain := true
	for i, key := range keys.keys {
		pair := tied{m.text(key), m.text(keys.values[i])}
		plain = plain && plainName.MatchString(pair.target) && plainName.MatchString(pair.source)
		out = append(out, pair)
	}
	if plain {
		return out
	}
	names := m.parameterNames(x)
	sources := make(map[string]string)
	var expanded []tied
	for _, pair := range out {
		to, from := matching(names, pair.target), matching(names, pair.source)
		if len(to) == 0 || len(from) == 0 || len(to)%len(from) != 0 {
			panic(failure("the tied weights %s of %s are not known", pair.target, x.class.name))
		}
		for i, target := range to {
			source := from[i%len(from)]
			if first, ok := sources[source]; ok {
				source = first
			}
			if _, known := sources[target]; !known {
				expanded = append(expanded, tied{target, source})
			}
			sources[target] = source
		}
	}
	return expanded
}

// parameterNames are the names of all parameters and buffers, in order.
func (m *Machine) parameterNames(x *instance) (names []string) {
	m.eachBelow(x, "", func(path string, part *instance) {
		for i, v := range part.fields.values {
			if p, ok := v.(*tensor); ok && (p.parameter || p.buffer) {
				names = append(names, joined(path, part.fields.names[i]))
			}
		}
	})
	slices.Sort(names)
	return names
}

// matching are the names that begin as a pattern says.
func matching(names []string, pattern string) (out []string) {
	begins, err := regexp.Compile("^" + pattern)
	if err != nil {
		panic(failure("the pattern %s of tied weights is not known", pattern))
	}
	for _, name := range names {
		if begins.MatchString(name) {
			out = append(out, name)
		}
	}
	return out
}

// tie is tie_weights.
func (m *Machine) tie(x *instance) {
	own, _ := m.optional(x, "_tied_weights_keys")
	keys, now := own.(*dict)
	config, _ := x.fields.get("config")
	if !now && m.library.before(5, 0) {
		m.tieEarlier(x)
		return
	}
	if on, _ := m.optional(config, "tie_word_embeddings"); keys == nil || on != true {
		return
	}
	for _, pair := range m.tiedOf(x, keys) {
		key := pair.target
		target, name := m.parameterAt(x, key)
		source, from := m.parameterAt(x, pair.source)
		if target == nil || source == nil {
			panic(failure("the tied weights %s of %s are not known", key, x.class.name))
		}
		shared, _ := source.fields.get(from)
		old, _ := target.fields.get(name)
		if same(old, shared) {
			continue
		}
		target.fields.set(m, name, hold(shared))
		to, of := stateOf(target), stateOf(source)
		switch { // _adjust_bias pads a bias that is there
		case to.linear != nil && name == "weight" && of.embedding != nil && to.linear.Bias != nil:
			m.t.TieBiased(to.linear, of.embedding)
		case to.linear != nil && name == "weight" && of.embedding != nil:
			m.t.Tie(to.linear, of.embedding)
		case to.embedding != nil && of.embedding != nil && name == "weight":
			m.t.TieTable(to.embedding, of.embedding)
		case to.linear != nil && of.linear != nil && name == "weight":
			m.t.TieWeight(to.linear, of.linear)
		case to.linear != nil && name == "bias":
			m.t.TieBias(to.linear, shared.(*tensor).x)
		case !to.isLayer() || name != "weight" && name != "bias":
			if old, ok := old.(*tensor); ok {
				m.t.Discard(old.x)
			}
		default:
			panic(failure("tying %s of %s is not known", key, x.class.name))
		}
	}
}

// parameterAt is the module that has a parameter, and what it calls it.
func (m *Machine) parameterAt(x *instance, path string) (*instance, string) {
	at := strings.LastIndexByte(path, '.')
	if at < 0 {
		return x, path
	}
	return m.at(x, path[:at]), path[at+1:]
}
