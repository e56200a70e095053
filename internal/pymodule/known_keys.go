package pymodule

import (
	"regexp"
	"slices"
	"strings"
)

// This file says which keys of a config.json a configuration has; others are private, and
// ignored, as the prober does (auto.py, known_keys).

// commonKeys are those of every configuration.
var commonKeys = strings.Fields(`num_labels id2label label2id is_encoder_decoder is_decoder pad_token_id bos_token_id eos_token_id decoder_start_token_id
	tie_word_embeddings`)

// leavePrivate takes away the keys that a configuration does not have, and those within it.
func (m *Machine) leavePrivate(kind *class, d *dict) {
	parts, _ := kind.lookup("sub_configs").(*dict)
	keys := m.ownKeys(kind)
	kept := newDict()
	for i, k := range d.keys {
		name, v := k.(string), d.values[i]
		if !slices.Contains(keys, name) && name != "model_type" {
			continue
		}
		if within, ok := v.(*dict); ok && parts != nil {
			if of, _ := m.partClass(parts, name, within); of != nil {
				m.leavePrivate(of, within)
			}
		}
		kept.set(m, name, v)
	}
	d.index, d.keys, d.values = kept.index, kept.keys, kept.values
}

// partClass is the class of a configuration within another, which may be any family's.
func (m *Machine) partClass(parts *dict, name string, keys *dict) (*class, bool) {
	v, ok := parts.get(name)
	if !ok {
		return nil, false
	}
	kind, _ := v.(*class)
	if l, ok := v.(*lazyImport); ok {
		kind, _ = m.resolveImport(l).(*class)
	}
	if kind == nil || kind.name != "AutoConfig" {
		return kind, kind != nil
	}
	if modelType, ok := keys.get("model_type"); ok && m.entry("CONFIG_MAPPING_NAMES", m.text(modelType)) != "" {
		return m.configurationOf(m.text(modelType)), true
	}
	return nil, false
}

var identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// ownKeys are what a configuration's constructors take: fields, parameters, other names of
// those, and what they look for by name for older files.
func (m *Machine) ownKeys(kind *class) []string {
	if keys := m.library.ownKeys(kind); keys != nil {
		return keys
	}
	keys := slices.Clone(commonKeys)
	for name := range baseFields {
		keys = append(keys, name)
	}
	if names, ok := kind.lookup("attribute_map").(*dict); ok {
		for i, k := range names.keys {
			keys = append(keys, k.(string), names.values[i].(string))
		}
	}
	for _, k := range kind.mro {
		keys = append(keys, k.fields...)
		for _, method := range []string{"__init__", "__post_init__", "convert_rope_params_to_dict"} {
			if f, ok := k.attrs[method].(*function); ok {
				keys = append(keys, f.code.params...)
				keys = append(keys, m.textsIn(f)...)
			}
		}
	}
	if slices.Contains(keys, "rope_parameters") {
		keys = append(keys, "rope_scaling", "rope_theta", "partial_rotary_factor")
	}
	keys = append(keys, m.library.trees.lookedFor(strings.Replace(kind.file, ".configuration_", ".modeling_", 1))...)
	m.library.keepOwnKeys(kind, keys)
	return keys
}

// lookedFor are the keys that a module of models looks for in configurations, which need not
// have them: getattr(config, "share_att_key", False).
func (t *Trees) lookedFor(module string) []string {
	tree := t.module(module)
	if tree == nil {
		return nil
	}
	var out []string
	tree.root.contains(func(n *node) bool {
		if n.kind != "Call" || len(n.kids[1].kids) < 2 || n.kids[0].text != "getattr" && n.kids[0].text != "hasattr" {
			return false
		}
		of, name := n.kids[1].kids[0], n.kids[1].kids[1]
		if text, ok := strings.CutPrefix(name.text, "s"); ok && of.text == "config" && name.kind == "Constant" {
			out = append(out, text)
		}
		return false
	})
	return out
}

// textsIn are the identifiers among the texts of a function.
func (m *Machine) textsIn(f *function) []string {
	tree := m.library.trees.module(strings.TrimSuffix(strings.ReplaceAll(f.code.file, "/", "."), ".py"))
	if tree == nil {
		return nil
	}
	var out []string
	var within func(n *node, inside bool)
	within = func(n *node, inside bool) {
		if n == nil {
			return
		}
		inside = inside || n.kind == "FunctionDef" && n.line == f.code.line
		if text, ok := strings.CutPrefix(n.text, "s"); inside && ok && n.kind == "Constant" && identifier.MatchString(text) {
			out = append(out, text)
		}
		for _, k := range n.kids {
			within(k, inside)
		}
	}
	within(tree.root, false)
	return out
}

// ownKeys are those that were found for a class, nil if none were.
func (l *Library) ownKeys(kind *class) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.keys[kind.file+"."+kind.name]
}

func (l *Library) keepOwnKeys(kind *class, keys []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys[kind.file+"."+kind.name] = keys
}
