package pymodule

import (
	"slices"
	"strings"
)

// This file is transformers.models.auto: which classes a model type has.

const autoFolder = "transformers.models.auto."

// autoName is what the modules of transformers.models.auto have.
func autoName(m *Machine, module, name string) value {
	switch {
	case name == "AutoConfig":
		c := newClass(name, m.types["object"])
		c.attrs["for_model"] = &classMethod{&builtin{"for_model", func(m *Machine, a *args) value {
			return m.invoke(m.configurationOf(m.text(a.pos[1])), &args{nil, a.names, a.named})
		}}}
		return c
	case name == "CONFIG_MAPPING":
		return m.configurationMapping()
	case name == "modeling_auto", name == "configuration_auto":
		return m.module(autoFolder + name)
	case strings.HasPrefix(name, "Auto"):
		return m.autoClass(name)
	case strings.HasSuffix(name, "_NAMES"):
		return m.mapping(name)
	}
	return nil
}

// source is a module of transformers as it is written, where shims take its place.
func (m *Machine) source(name string) *namespace {
	key := "source of " + name
	if n := m.modules[key]; n != nil {
		return n
	}
	n := &namespace{name: name, names: make(map[string]value), machine: m}
	m.modules[key] = n
	if c := m.library.code(n.name); c != nil {
		m.importInto(n, c)
	}
	return n
}

// mapping is a dictionary from model types to names of classes.
func (m *Machine) mapping(name string) value {
	for _, module := range []string{"modeling_auto", "configuration_auto", "auto_mappings"} {
		if d, ok := m.source(autoFolder + module).names[name].(*dict); ok { // and not what it imports
			return d
		}
	}
	return nil
}

// entry is what a mapping has for a model type, "" if nothing: a class, or the first of
// several.
func (m *Machine) entry(mapping, modelType string) string {
	d, ok := m.mapping(mapping).(*dict)
	if !ok {
		return ""
	}
	switch v, _ := d.get(modelType); v := v.(type) {
	case string:
		return v
	case *tuple:
		name, _ := v.items[0].(string)
		return name
	}
	return ""
}

// folderOf is where the source of a model type is.
func (m *Machine) folderOf(modelType string) string {
	if folder := m.entry("SPECIAL_MODEL_TYPE_TO_MODULE_NAME", modelType); folder != "" {
		return folder
	}
	return strings.ReplaceAll(modelType, "-", "_")
}

// classIn finds a class in a folder of models, nil if there is none.
func (m *Machine) classIn(folder, kind, name string) *class {
	for _, module := range m.library.trees.within("transformers.models." + folder + "." + kind) {
		switch c := m.module(module).(*namespace).names[name].(type) {
		case *class:
			return c
		case *unknown: // what makes the class is not known
			c.fail()
		}
	}
	return nil
}

// configurationOf is the class of a model type's configuration.
func (m *Machine) configurationOf(modelType string) *class {
	name := m.entry("CONFIG_MAPPING_NAMES", modelType)
	if name == "" {
		panic(raise("KeyError", "%s", quote(modelType)))
	}
	c := m.classIn(m.folderOf(modelType), "configuration_", name)
	if c == nil {
		c = m.classAnywhere("configuration_", name)
	}
	if c == nil {
		panic(failure("%s, the configuration of a %s, is not in the source", name, modelType))
	}
	return c
}

// modelClass is the class of a model, nil if the source of its model type has none of
// that name.
func (m *Machine) modelClass(modelType, name string) *class {
	if c := m.classIn(m.folderOf(modelType), "modeling_", name); c != nil || name == "" {
		return c
	}
	return m.classAnywhere("modeling_", name)
}

// classAnywhere finds a class in the folder that its name begins with, nil if there is none:
// a model type may share the classes of another.
func (m *Machine) classAnywhere(kind, name string) *class {
	plain := strings.ToLower(strings.ReplaceAll(name, "_", ""))
	best, length := "", 0
	for _, module := range m.library.trees.within("transformers.models.") {
		folder, file, ok := strings.Cut(strings.TrimPrefix(module, "transformers.models."), ".")
		short := strings.ReplaceAll(folder, "_", "")
		if ok && strings.HasPrefix(file, kind) && strings.HasPrefix(plain, short) && len(short) > length {
			best, length = folder, len(short)
		}
	}
	if best == "" {
		return nil
	}
	return m.classIn(best, kind, name)
}

// configurationMapping is CONFIG_MAPPING.
func (m *Machine) configurationMapping() value {
	c := newClass("_LazyConfigMapping", m.types["object"])
	c.attrs["__getitem__"] = &builtin{"__getitem__", func(m *Machine, a *args) value { return m.configurationOf(m.text(a.pos[1])) }}
	c.attrs["__contains__"] = &builtin{"__contains__", func(m *Machine, a *args) value {
		name, ok := a.pos[1].(string)
		return ok && m.entry("CONFIG_MAPPING_NAMES", name) != ""
	}}
	return &instance{refs: refs{1}, class: c}
}

// autoClass is AutoModel and its kin: from_config makes the class that a mapping names.
func (m *Machine) autoClass(name string) value {
	mapping := m.mappingOf(name)
	if mapping == "" {
		return nil
	}
	c := newClass(name, m.types["object"])
	c.attrs["from_config"] = &classMethod{&builtin{"from_config", func(m *Machine, a *args) value {
		config, ok := a.need(1, "config").(*instance)
		if !ok {
			panic(failure("%s.from_config of a %s is not known", name, typeName(a.need(1, "config"))))
		}
		modelType, _ := m.attribute(config, "model_type").(string)
		made := m.entry(mapping, modelType)
		if made == "" {
			panic(raise("ValueError", "Unrecognized configuration class %s for this kind of AutoModel: %s.", config.class.name, name))
		}
		kind := m.modelClass(modelType, made)
		if kind == nil {
			panic(failure("%s of a %s is not in the source", made, modelType))
		}
		return m.fromConfig(kind, hold(m.ownConfiguration(kind, config)))
	}}}
	return c
}

// ownConfiguration is the configuration of a text model within that of a larger one,
// where a model is a text model.
func (m *Machine) ownConfiguration(kind *class, config *instance) value {
	parts, _ := config.class.lookup("sub_configs").(*dict)
	if parts == nil {
		return config
	}
	text, ok := parts.get("text_config")
	if own, _ := kind.lookup("config_class").(*class); !ok || own == nil || value(own) != text {
		return config
	}
	return m.getattr(config, "text_config")
}

// fromConfig is _from_config.
func (m *Machine) fromConfig(kind *class, config value) value {
	m.adjustAttention(kind, config)
	return m.call(kind, config)
}

// mappingOf is the name of the mapping that an Auto class looks in: what its class
// body says.
func (m *Machine) mappingOf(auto string) string {
	tree := m.library.trees.module(autoFolder + "modeling_auto")
	if tree == nil {
		return ""
	}
	for _, n := range tree.root.kids[0].kids {
		if n.kind != "ClassDef" || n.text != auto {
			continue
		}
		for _, s := range n.kids[2].kids {
			if s.kind == "Assign" && s.kids[0].kids[0].text == "_model_mapping" {
				return s.kids[1].text + "_NAMES"
			}
		}
	}
	return ""
}

// adjustAttention is _check_and_adjust_attn_implementation where a part has only eager
// attention, as backbones do.
func (m *Machine) adjustAttention(kind *class, config value) {
	if kind.lookup("_supports_sdpa") != true {
		m.setImplementation(config, "_attn_implementation", "eager")
	}
}

// setImplementation sets _attn_implementation or the like of a configuration, and of
// those within it.
func (m *Machine) setImplementation(config value, key, choice string) {
	x, ok := config.(*instance)
	if !ok {
		return
	}
	m.setattr(x, key, choice)
	if parts, ok := x.class.lookup("sub_configs").(*dict); ok {
		for _, name := range parts.keys {
			if part, _ := m.optional(x, name.(string)); part != nil {
				m.setImplementation(part, key, choice)
				m.drop(part)
			}
		}
	}
}

// within are the modules whose names begin with something, sorted.
func (t *Trees) within(prefix string) []string {
	first, _ := slices.BinarySearch(t.names, prefix)
	end := first
	for end < len(t.names) && strings.HasPrefix(t.names[end], prefix) {
		end++
	}
	return t.names[first:end]
}
