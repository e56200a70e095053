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

// configurationClass is PreTrainedConfig. What it does about rotary positions is
// evaluated.
func (m *Machine) configurationClass() *class {
	if c := m.types["PreTrainedConfig"]; c != nil {
		return c
	}
	base := []*class{m.types["object"]}
	const rotary = "transformers.modeling_rope_utils"
	if mixin, ok := m.module(rotary).(*namespace).names["RotaryEmbeddingConfigMixin"].(*class); ok { // since transformers 5
		base = []*class{mixin}
	}
	c := newClass("PreTrainedConfig", base...)
	m.types["PreTrainedConfig"] = c
	if len(c.mro) == 2 {
		earlierConfig(c)
	} else {
		c.make = makeConfig
	}
	for name, v := range baseFields {
		c.attrs[name] = v
	}
	c.attrs["attribute_map"], c.attrs["sub_configs"] = newDict(), newDict()
	set := func(name string, f func(m *Machine, a *args) value) { c.attrs[name] = &builtin{name, f} }
	for _, name := range []string{"validate_layer_type", "validate"} { // a configuration that was read is taken as it is
		set(name, func(*Machine, *args) value { return none{} })
	}
	set("__post_init__", postInitConfig)
	set("get_text_config", textConfig)
	m.addLayerConfigs(c)
	set("__getattr__", func(m *Machine, a *args) value {
		x := a.pos[0].(*instance)
		if name, ok := x.class.lookup("attribute_map").(*dict).get(a.pos[1]); ok {
			v, _ := m.optional(x, name.(string))
			return v
		}
		return nil
	})
	set("__setattr__", func(m *Machine, a *args) value {
		x, name := a.pos[0].(*instance), a.pos[1].(string)
		if own, ok := x.class.lookup("attribute_map").(*dict).get(name); ok {
			name = own.(string)
		}
		if p, ok := x.class.lookup(name).(*property); ok && p.set != nil {
			return m.invoke(p.set, &args{pos: []value{x, a.pos[2]}})
		}
		x.fields.set(m, name, hold(a.pos[2]))
		return none{}
	})
	return c
}

// textConfig is get_text_config: the configuration of the text within another. Of a flat
// one of an encoder and a decoder, what is said of one of both becomes what is said of
// the model.
func textConfig(m *Machine, a *args) value {
	x := a.pos[0].(*instance)
	decoder, encoder := m.truth(a.or(1, "decoder", false)), m.truth(a.or(2, "encoder", false))
	names := []string{"text_encoder", "decoder", "generator", "text_config"}
	switch {
	case decoder && !encoder:
		names = names[1:]
	case encoder && !decoder:
		names = names[:1]
	}
	var found value
	for _, name := range names {
		v, _ := m.optional(x, name)
		if v == nil || v == (none{}) {
			continue
		}
		if found != nil {
			panic(raise("ValueError", "Multiple valid text configs were found in the model config"))
		}
		found = v
	}
	if found != nil {
		return found
	}
	if both, _ := m.optional(x, "is_encoder_decoder"); decoder == encoder || both != true {
		return hold(x)
	}
	prefix := map[bool]string{true: "decoder_", false: "encoder_"}[decoder]
	part := m.copied(x).(*instance)
	for _, key := range slices.Clone(part.fields.names) {
		name, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		if name == "layers" || name == "attention_heads" {
			name = map[string]string{"layers": "num_hidden_layers", "attention_heads": "num_attention_heads"}[name]
		}
		v, _ := part.fields.get(key)
		hold(v)
		part.fields.remove(m, key)
		m.setattr(part, name, v)
	}
	return part
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
			key := name
			if to, ok := own.get(name); ok {
				key = to.(string)
				m.rename(c, name, key)
			}
			declared[key] = true
			v, ok := given[key]
			if !ok {
				v = c.lookup(key)
			}
			if v != nil {
				x.fields.set(m, key, m.copied(v))
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

// rename makes a declared name another one for an attribute, whose default it has.
func (m *Machine) rename(c *class, name, to string) {
	v := c.lookup(name)
	if _, done := v.(*property); done {
		return
	}
	c.set(to, v)
	c.set(name, &property{get: &builtin{name, func(m *Machine, a *args) value { return m.getattr(a.pos[0], to) }}})
}

func postInitConfig(m *Machine, a *args) value {
	x := a.pos[0].(*instance)
	if labels, ok := a.get(-1, "id2label").(*dict); ok && a.get(-1, "num_labels") == nil {
		x.fields.set(m, "num_labels", int64(len(labels.keys)))
	}
	rest := newDict()
	for i, name := range a.names {
		rest.set(m, name, hold(a.named[i]))
	}
	if _, rotates := x.fields.get("rope_parameters"); rotates {
		rest = m.invoke(x.class.lookup("convert_rope_params_to_dict"), a).(*dict)
	}
	for i, name := range rest.keys {
		m.setattr(x, name.(string), hold(rest.values[i]))
	}
	return none{}
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
