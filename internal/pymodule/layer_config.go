package pymodule

// This file is per_layer_config: configurations of layers that differ from the model's
// (transformers/integrations/heterogeneity/configuration_utils.py).

// layerConfigs is what per_layer_config gives: the configuration of each layer, or of a type
// of layers.
type layerConfigs struct{ config *instance }

func (m *Machine) addLayerConfigs(c *class) {
	const kept = "_per_layer_overrides"
	c.attrs["per_layer_config"] = &property{
		get: &builtin{"per_layer_config", func(_ *Machine, a *args) value { return &layerConfigs{a.pos[0].(*instance)} }},
		set: &builtin{"per_layer_config", func(m *Machine, a *args) value {
			x := a.pos[0].(*instance)
			given, ok := a.pos[1].(*dict)
			if !ok {
				x.fields.remove(m, kept)
				return none{}
			}
			overrides := newDict()
			for i, k := range given.keys {
				overrides.set(m, integer(m.call(m.types["int"], k)), hold(given.values[i]))
			}
			x.fields.set(m, kept, overrides)
			return none{}
		}},
	}
	c.attrs["is_heterogeneous"] = &property{get: &builtin{"is_heterogeneous", func(_ *Machine, a *args) value {
		_, ok := a.pos[0].(*instance).fields.get(kept)
		return ok
	}}}
}

// of is the configuration of a layer, or of the first layer of a type.
func (c *layerConfigs) of(m *Machine, which value) value {
	kept, ok := c.config.fields.get("_per_layer_overrides")
	if !ok {
		return hold(c.config)
	}
	if name, isName := which.(string); isName {
		types := m.getattr(c.config, "layer_types").(*list)
		which = m.indexOf(types.items, name)
	}
	out := m.copied(c.config).(*instance)
	out.fields.remove(m, "_per_layer_overrides")
	if overrides, ok := kept.(*dict).get(which); ok {
		d := overrides.(*dict)
		for i, k := range d.keys {
			if k != "skip" {
				m.setattr(out, k.(string), hold(d.values[i]))
			}
		}
	}
	return out
}
