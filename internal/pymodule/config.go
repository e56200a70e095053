package pymodule

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
)

// This file is PreTrainedConfig (transformers/configuration_utils.py): what a
// configuration class declares is evaluated, its values are those of a config.json.

// baseFields are what every configuration has.
var baseFields = map[string]value{
	"return_dict": true, "output_hidden_states": false, "output_attentions": false, "chunk_size_feed_forward": int64(0),
	"is_encoder_decoder": false, "problem_type": none{}, "id2label": none{}, "label2id": none{}, "dtype": none{}, "name_or_path": "",
	"architectures": none{}, "num_labels": int64(2),
}

func (m *Machine) addConfiguration() {
	c := newClass("PreTrainedConfig", m.types["object"])
	m.types["PreTrainedConfig"] = c
	for name, v := range baseFields {
		c.attrs[name] = v
	}
	c.attrs["attribute_map"], c.attrs["sub_configs"] = newDict(), newDict()
	c.attrs["default_theta"], c.attrs["default_rope_type"], c.attrs["ignore_keys_at_rope_validation"] = 10000.0, "default", none{}
	set := func(name string, f func(m *Machine, a *args) value) { c.attrs[name] = &builtin{name, f} }
	set("__post_init__", postInitConfig)
	set("get_text_config", func(_ *Machine, a *args) value { return hold(a.pos[0]) })
	set("__getattr__", func(m *Machine, a *args) value {
		x := a.pos[0].(*instance)
		if name, ok := x.class.lookup("attribute_map").(*dict).get(a.pos[1]); ok {
			return m.getattr(x, name.(string))
		}
		return nil
	})
	set("__setattr__", func(m *Machine, a *args) value {
		x, name := a.pos[0].(*instance), a.pos[1].(string)
		if own, ok := x.class.lookup("attribute_map").(*dict).get(name); ok {
			name = own.(string)
		}
		x.fields.set(m, name, hold(a.pos[2]))
		return none{}
	})
	c.make = makeConfig
}

// makeConfig is the __init__ of a configuration: declared fields, then the rest.
func makeConfig(m *Machine, c *class, a *args) value {
	x := &instance{refs: refs{1}, class: c}
	own := c.lookup("attribute_map").(*dict)
	given := make(map[string]value)
	for i, name := range a.names {
		if to, ok := own.get(name); ok {
			if _, both := given[to.(string)]; both || a.get(-1, to.(string)) != nil {
				continue
			}
			name = to.(string)
		}
		given[name] = a.named[i]
	}
	declared := make(map[string]bool)
	for _, k := range slices.Backward(c.mro) {
		for _, name := range k.fields {
			declared[name] = true
			v, ok := given[name]
			if !ok {
				v = c.lookup(name)
			}
			if v != nil {
				x.fields.set(m, name, m.copied(v))
			}
		}
	}
	rest := &args{pos: []value{x}}
	for _, name := range a.names {
		if v, ok := given[name]; ok && !declared[name] {
			rest.names, rest.named = append(rest.names, name), append(rest.named, v)
		}
	}
	m.drop(m.invoke(c.lookup("__post_init__"), rest))
	return x
}

func postInitConfig(m *Machine, a *args) value {
	x := a.pos[0].(*instance)
	if labels, ok := a.get(-1, "id2label").(*dict); ok && a.get(-1, "num_labels") == nil {
		x.fields.set(m, "num_labels", int64(len(labels.keys)))
	}
	_, rotates := x.fields.get("rope_parameters")
	if rotates {
		m.standardizeRope(x, a)
	}
	for i, name := range a.names {
		if rotates && (name == "rope_scaling" || name == "rope_theta") {
			continue
		}
		m.setattr(x, name, hold(a.named[i]))
	}
	return none{}
}

// standardizeRope is convert_rope_params_to_dict with standardize_rope_params, of
// one kind of layers.
func (m *Machine) standardizeRope(x *instance, a *args) {
	parameters, _ := x.fields.get("rope_parameters")
	if scaling, ok := a.get(-1, "rope_scaling").(*dict); ok && len(scaling.keys) > 0 {
		parameters = scaling
	}
	d, ok := m.copied(parameters).(*dict)
	if !ok {
		d = newDict()
	}
	def := func(key string, v value) {
		if d.find(key) < 0 {
			d.set(m, key, hold(v))
		}
	}
	theta := a.get(-1, "rope_theta")
	if theta == nil {
		if theta, ok = x.fields.get("rope_theta"); !ok {
			theta = x.class.lookup("default_theta")
		}
	}
	for i, k := range d.keys {
		if _, nested := d.values[i].(*dict); nested {
			panic(failure("rotary positions by kind of layer (%v) are not known", k))
		}
	}
	def("rope_theta", theta)
	if share, ok := m.optional(x, "partial_rotary_factor"); ok && share != (none{}) {
		def("partial_rotary_factor", share)
	}
	kind := value("default")
	if old, ok := d.get("type"); ok {
		kind = old
	}
	def("rope_type", kind)
	if kind, _ = d.get("rope_type"); slices.Contains([]value{"llama3", "yarn", "longrope"}, kind) {
		if n, ok := m.optional(x, "original_max_position_embeddings"); ok {
			d.set(m, "original_max_position_embeddings", n)
		} else {
			def("original_max_position_embeddings", m.getattr(x, "max_position_embeddings"))
		}
	}
	x.fields.set(m, "rope_parameters", d)
}

// fromJSON is data as Python has it.
func (m *Machine) fromJSON(data []byte) (value, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return nil, err
	}
	return m.pythonOf(v), nil
}

func (m *Machine) pythonOf(v any) value {
	switch v := v.(type) {
	case nil:
		return none{}
	case json.Number:
		if n, err := v.Int64(); err == nil && !strings.ContainsAny(v.String(), ".eE") {
			return n
		}
		x, err := v.Float64()
		if err != nil {
			return math.Inf(1)
		}
		return x
	case []any:
		l := newList()
		for _, item := range v {
			l.items = append(l.items, m.pythonOf(item))
		}
		return l
	case map[string]any:
		d := newDict()
		for _, k := range slices.Sorted(func(yield func(string) bool) {
			for k := range v {
				if !yield(k) {
					return
				}
			}
		}) {
			d.set(m, k, m.pythonOf(v[k]))
		}
		return d
	}
	return v
}
