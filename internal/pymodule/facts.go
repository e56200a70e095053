package pymodule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
	"memorymark/internal/workbudget"
)

// This file finds out what callers of a model need to know without building it: from its
// configuration, once that is evaluated, and from how its source is written.

// maxFacts bounds how many configurations are cached.
const maxFacts = 512

// Read evaluates a configuration.
func (l *Library) Read(c *hfconfig.Config) (models.Facts, error) {
	data, err := json.Marshal(c)
	if err != nil {
		return models.Facts{}, err
	}
	key := c.ModelType + " " + c.Architecture + " " + string(data)
	l.mu.Lock()
	known, ok := l.facts[key]
	l.mu.Unlock()
	if ok {
		return known.facts, known.err
	}
	known.facts, known.err = l.read(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.facts) >= maxFacts {
		clear(l.facts)
	}
	l.facts[key] = known
	return known.facts, known.err
}

type readFacts struct {
	facts models.Facts
	err   error
}

func (l *Library) read(c *hfconfig.Config) (facts models.Facts, err error) {
	if err := c.CheckRunnable(); err != nil {
		return facts, err
	}
	m := l.machine()
	defer func() {
		if err == nil {
			l.idle.Put(m)
		}
	}()
	defer catchInterruption(&err)
	defer m.catch(&err)
	m.budget = workbudget.New(configWork, nil)
	kind := m.modelClass(c.ModelType, c.Architecture)
	if kind == nil {
		return facts, fmt.Errorf("%s of a %s is not in the source", c.Architecture, c.ModelType)
	}
	config, err := m.configuration(c)
	if err != nil {
		return facts, err
	}
	switch input := kind.lookup("main_input_name"); input {
	case nil, "input_ids":
	case "pixel_values":
		facts.Images = m.imageShape(config)
	case "input_features":
		facts.Bins, _ = m.whole(config, "num_mel_bins")
		frames, _ := m.whole(config, "max_source_positions")
		if facts.Frames = 2 * frames; frames == 0 || facts.Bins == 0 { // a convolution of stride 2 halves them
			return facts, failure("a batch of %s is not known", m.repr(input))
		}
	default:
		return facts, failure("a batch of %s is not known", m.repr(input))
	}
	m.limitTokens(kind, config, &facts)
	_, facts.Routes = m.whole(config, "num_experts_per_tok")
	m.tellLayers(config.(*instance), &facts)
	return facts, nil
}

// imageShape is what an image of a model has before its height and width.
func (m *Machine) imageShape(config value) []int64 {
	vision := config
	if v, _ := m.optional(config, "vision_config"); v != nil && v != (none{}) {
		vision = v
	}
	var shape []int64
	if frames, ok := m.whole(vision, "num_frames"); ok {
		shape = append(shape, frames)
	}
	channels, ok := m.whole(vision, "num_channels")
	if !ok {
		channels = 3
	}
	return append(shape, channels)
}

// whole is an attribute that is a whole number.
func (m *Machine) whole(x value, name string) (int64, bool) {
	v, _ := m.optional(x, name)
	n, ok := v.(int64)
	return n, ok
}

// limitTokens finds out how long a text may be: as a table of positions is large, if the
// source makes one of as many rows as the configuration has positions.
func (m *Machine) limitTokens(kind *class, config value, facts *models.Facts) {
	for _, key := range []string{"max_target_positions", "max_position_embeddings"} {
		most, ok := m.whole(config, key)
		if !ok || key == "max_position_embeddings" && !m.makesTable(kind, key) {
			continue
		}
		if pad, ok := m.whole(config, "pad_token_id"); ok && m.mentions(kind, "create_position_ids_from_input_ids") {
			most -= pad + 1 // RoBERTa's positions begin behind that of padding
		}
		facts.MaxTokens, facts.TokensKey = most, m.nameOf(config.(*instance).class, key)
		return
	}
}

// nameOf is what a configuration calls an attribute.
func (m *Machine) nameOf(kind *class, key string) string {
	if names, ok := kind.lookup("attribute_map").(*dict); ok {
		if own, ok := names.get(key); ok {
			return own.(string)
		}
	}
	return key
}

// moduleOf is the tree of the module that a class is in.
func (m *Machine) moduleOf(kind *class) *node {
	if t := m.library.trees.module(kind.file); t != nil {
		return t.root
	}
	return nil
}

// makesTable reports whether a class's module calls an embedding of as many rows as a key
// says.
func (m *Machine) makesTable(kind *class, key string) bool {
	return m.moduleOf(kind).contains(func(n *node) bool {
		if n.kind != "Call" || !strings.HasSuffix(n.kids[0].text, "Embedding") || len(n.kids[1].kids) == 0 {
			return false
		}
		rows := n.kids[1].kids[0]
		return rows != nil && rows.kind == "Attribute" && rows.text == key
	})
}

// mentions reports whether a class's module has a function of a name.
func (m *Machine) mentions(kind *class, name string) bool {
	return m.moduleOf(kind).contains(func(n *node) bool { return n.kind == "FunctionDef" && n.text == name })
}

// contains reports whether a tree has a node.
func (n *node) contains(is func(n *node) bool) bool {
	return n != nil && (is(n) || slices.ContainsFunc(n.kids, func(k *node) bool { return k.contains(is) }))
}

// tellLayers finds out how many layers there are, if they are called one after the other,
// and what the configuration says about each: lists with something for each layer, or
// with the layers that something is true of, and after how many it is true again.
func (m *Machine) tellLayers(config *instance, facts *models.Facts) {
	layers, ok := m.whole(config, "num_hidden_layers")
	parts, _ := config.class.lookup("sub_configs").(*dict)
	both, _ := m.optional(config, "is_encoder_decoder")
	if facts.LayersKey = m.nameOf(config.class, "num_hidden_layers"); !ok || both == true || parts != nil && len(parts.keys) > 0 || layers > maxLayers {
		return
	}
	m.spendElements(layers)
	facts.Layers = make([]any, max(layers, 0))
	for i := range facts.Layers {
		facts.Layers[i] = m.kindOf(config, int64(i), layers)
	}
}

const maxLayers = 10_000

func (m *Machine) kindOf(config *instance, layer, layers int64) string {
	var out strings.Builder
	for i, name := range config.fields.names {
		switch v := config.fields.values[i].(type) {
		case int64:
			switch {
			case strings.HasPrefix(name, "first_k_"):
				fmt.Fprint(&out, layer < v, " ")
			case v > 0 && (strings.HasSuffix(name, "_step") || strings.HasSuffix(name, "_interval") || strings.HasSuffix(name, "_freq")):
				fmt.Fprint(&out, (layer+1)%v == 0, " ")
			}
		case *list:
			if int64(len(v.items)) >= layers && layer < int64(len(v.items)) {
				fmt.Fprint(&out, m.repr(v.items[layer]), " ")
			} else if strings.HasSuffix(name, "_layers") {
				fmt.Fprint(&out, slices.Contains(v.items, value(layer)), " ")
			}
		}
	}
	return out.String()
}

// head is the row of a class.
func (m *Machine) head(modelType, name string, labels models.Labels) models.Head {
	h := models.Head{Architecture: name, Labels: labels, Decodes: labels == models.TargetIDs}
	reads := func(key string) bool {
		f := m.forwardOf(modelType, name)
		return f.contains(func(n *node) bool { return n.kind == "Attribute" && n.text == key })
	}
	if labels == models.Classes {
		h.ReadsEnds = reads("eos_token_id")
		for _, key := range []string{"pad_token_id", "eos_token_id"} {
			if reads(key) {
				h.Needs = append(h.Needs, key)
			}
		}
	}
	if m.modulesMention(modelType, "decoder_start_token_id") {
		h.Needs = append(h.Needs, "decoder_start_token_id")
	}
	return h
}

// modulesMention reports whether an attribute is read in the modules of a model type.
func (m *Machine) modulesMention(modelType, key string) bool {
	return slices.ContainsFunc(m.library.trees.within("transformers.models."+m.folderOf(modelType)+".modeling_"), func(module string) bool {
		return m.library.trees.module(module).root.contains(func(n *node) bool { return n.kind == "Attribute" && n.text == key })
	})
}

// forwardOf is how a class's forward is written, nil if it is not in the source.
func (m *Machine) forwardOf(modelType, name string) *node {
	for _, module := range m.library.trees.within("transformers.models." + m.folderOf(modelType) + ".modeling_") {
		if f := m.methodIn(module, name, "forward"); f != nil {
			return f
		}
	}
	return nil
}

// methodIn is a method of a class of a module, or of a base that has it. What modules
// import is looked for by its name alone.
func (m *Machine) methodIn(module, name, method string) *node {
	tree := m.library.trees.module(module)
	if tree == nil {
		return nil
	}
	for _, n := range tree.root.kids[0].kids {
		switch {
		case n.kind == "ImportFrom" && slices.ContainsFunc(n.kids[0].kids, func(alias *node) bool { return aliasName(alias) == name }):
			from := &namespace{name: module, machine: m}
			return m.methodIn(from.absolute(n.text), name, method)
		case n.kind != "ClassDef" || n.text != name:
			continue
		}
		for _, s := range n.kids[2].kids {
			if s.kind == "FunctionDef" && s.text == method {
				return s
			}
		}
		for _, base := range n.kids[0].kids {
			if f := m.methodIn(module, cmp.Or(base.text, "?"), method); f != nil {
				return f
			}
		}
	}
	return nil
}

// TakesKeywords reports whether forward of a class takes any keyword, and so
// num_items_in_batch (transformers/trainer.py, model_accepts_loss_kwargs).
func (l *Library) TakesKeywords(modelType, architecture string, v models.Versions) bool {
	if l = l.of(v); l == nil {
		return false
	}
	m := l.machine()
	defer l.idle.Put(m)
	kind := m.modelClass(modelType, architecture)
	if kind == nil || kind.lookup("accepts_loss_kwargs") == false {
		return false
	}
	f := m.forwardOf(modelType, architecture)
	return f != nil && f.kids[0].kids[5] != nil
}

// ModelType is the type of an architecture, "" if the source has none of that name. Of
// several the one that the class is named after is meant: GPT-SW3 has GPT-2's classes.
func (l *Library) ModelType(architecture string) string {
	m := l.machine()
	defer l.idle.Put(m)
	first := ""
	for _, task := range tasks {
		d, _ := m.mapping(task.mapping).(*dict)
		for i := 0; d != nil && architecture != "" && i < len(d.keys); i++ {
			names := []value{d.values[i]}
			if several, ok := d.values[i].(*tuple); ok {
				names = several.items
			}
			if modelType := d.keys[i].(string); slices.Contains(names, value(architecture)) {
				first = cmp.Or(first, modelType)
				if strings.HasPrefix(strings.ToLower(architecture), strings.NewReplacer("_", "", "-", "").Replace(modelType)) {
					return modelType
				}
			}
		}
	}
	return first
}
