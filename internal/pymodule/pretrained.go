package pymodule

import (
	"slices"
	"strings"

	"memorymark/internal/models"
	"memorymark/internal/torch"
)

// addPretrained makes PreTrainedModel (transformers/modeling_utils.py).
func (m *Machine) addPretrained() {
	c := newClass("PreTrainedModel", m.types["Module"])
	m.types["PreTrainedModel"] = c
	set := func(name string, f func(m *Machine, x *instance, a []value) value) {
		c.attrs[name] = &builtin{name, func(m *Machine, a *args) value { return f(m, a.pos[0].(*instance), a.pos[1:]) }}
	}
	c.attrs["__init__"] = &builtin{"__init__", func(m *Machine, a *args) value {
		x, config := a.pos[0].(*instance), a.need(1, "config")
		if v, _ := m.optional(config, "_attn_implementation"); len(m.library.own) > 0 && (v == nil || v == (none{})) {
			eager, _ := m.optional(config, "attn_implementation")
			m.chooseAttention(x.class, config, models.Run{Eager: eager == "eager"})
			m.setImplementation(config, "_experts_implementation", "grouped_mm")
		}
		x.fields.set(m, "config", hold(config))
		return none{}
	}}
	m.addEmbeddingMethods(set)
	addMaskMethods(c)
	set("post_init", func(m *Machine, x *instance, _ []value) value { m.postInit(x); return none{} })
	set("get_input_embeddings", func(m *Machine, x *instance, _ []value) value { return m.inputEmbeddings(x) })
	set("_init_weights", func(m *Machine, _ *instance, a []value) value { m.initWeights(a[0].(*instance)); return none{} })
	set("warn_if_padding_and_no_attention_mask", func(m *Machine, x *instance, a []value) value {
		m.lookForPadding(x, a[0], a[1])
		return none{}
	})
	c.attrs["loss_function"] = &property{
		get: &builtin{"loss_function", func(m *Machine, a *args) value { return m.lossFunction(a.pos[0].(*instance)) }},
		set: &builtin{"loss_function", func(m *Machine, a *args) value { panic(failure("a loss function that is set is not known")) }},
	}
	c.attrs["dtype"] = &property{get: &builtin{"dtype", func(m *Machine, a *args) value { return m.dtypeOfModel(a.pos[0].(*instance)) }}}
	c.attrs["_from_config"] = &classMethod{&builtin{"_from_config", func(m *Machine, a *args) value {
		return m.fromConfig(a.pos[0].(*class), hold(a.need(1, "config")))
	}}}
	c.attrs["_tied_weights_keys"], c.attrs["is_gradient_checkpointing"] = none{}, false
}

// dtypeOfModel is the type of a model's first parameter of floats.
func (m *Machine) dtypeOfModel(x *instance) value {
	var found value = none{}
	m.walk(x, false, func(part *instance) {
		for _, v := range part.fields.values {
			if p, ok := v.(*tensor); ok && p.parameter && p.x.DType.IsFloat() && found == (none{}) {
				found = dtype(p.x.DType)
			}
		}
	})
	return found
}

// inputEmbeddings is get_input_embeddings, which looks for one of the usual attributes.
func (m *Machine) inputEmbeddings(x *instance) value {
	name, ok := x.class.lookup("_input_embed_layer").(string)
	if !ok {
		name = "embed_tokens"
	}
	base, _ := x.class.lookup("base_model_prefix").(string)
	for _, path := range []string{name, "embeddings." + name, "model." + name} {
		if part := m.at(x, path); part != nil {
			return hold(part)
		}
	}
	for _, path := range []string{"language_model", base} {
		if part := m.at(x, path); path != "" && part != nil && part.class.is(m.types["PreTrainedModel"]) {
			return m.call(m.getattr(part, "get_input_embeddings"))
		}
	}
	return none{}
}

// nameLayers says what layers are called, and which are the embeddings of what goes in
// (enable_input_require_grads) and of what comes out.
func (m *Machine) nameLayers(model *instance) {
	var output *instance
	if own, ok := model.class.lookup("get_output_embeddings").(*function); ok {
		output, _ = m.call(own, hold(model)).(*instance)
	} else {
		output = m.at(model, "lm_head")
	}
	var precise []string
	if names, ok := model.class.lookup("_keep_in_fp32_modules").(*list); ok {
		for _, v := range names.items {
			precise = append(precise, m.text(v))
		}
	}
	m.walk(model, false, func(x *instance) {
		if x.class.is(m.types["PreTrainedModel"]) {
			if part, ok := m.call(m.getattr(x, "get_input_embeddings")).(*instance); ok {
				stateOf(part).input = true
			}
		}
		s := stateOf(x)
		name := belowLayers(pathOf(x))
		switch {
		case s.embedding != nil:
			s.embedding.Named(name)
		case s.linear != nil && x == output:
			s.linear.AsOutput(name)
		case s.linear != nil:
			s.linear.Named(name)
			if slices.ContainsFunc(precise, func(part string) bool { return slices.Contains(strings.Split(name, "."), part) }) {
				s.linear.InFloat32()
			}
		case s.conv != nil:
			s.conv.Named(name)
		}
		m.describeAttention(x)
	})
}

// describeAttention says what becomes of the queries, keys and values that a module
// projects, which matters to ranks that have only columns of them: each is viewed as heads
// of head_dim, and queries and keys may be normalized. A norm with as many weights as there
// are columns is one of all heads together, as Olmo2Attention's.
func (m *Machine) describeAttention(x *instance) {
	for _, name := range []string{"q", "k", "v"} {
		part := m.at(x, name+"_proj")
		if part == nil || !part.isModule() || stateOf(part).linear == nil {
			continue
		}
		l := stateOf(part).linear
		size, _ := x.fields.get("head_dim")
		if n, ok := size.(int64); ok {
			l.InHeads(n)
		}
		if norm := m.at(x, name+"_norm"); norm != nil {
			if w := norm.own("weight"); w != nil && w.Numel() == l.Weight.Dim(0) {
				l.NormedWhole()
			}
		}
	}
}

// belowLayers is what follows the last number in a path.
func belowLayers(path string) string {
	for rest := path; ; {
		part, after, more := strings.Cut(rest, ".")
		if !more {
			return path
		}
		if rest = after; isIndex(part) {
			path = after
		}
	}
}

// lossFunction is LOSS_MAPPING of what the model or the name of its class says.
func (m *Machine) lossFunction(x *instance) value {
	mapping := m.resolveImport(&lazyImport{"transformers.loss.loss_utils", "LOSS_MAPPING"})
	d, ok := mapping.(*dict)
	if !ok {
		panic(failure("the functions of losses are not known"))
	}
	if own, ok := m.optional(x, "loss_type"); ok {
		if f, ok := d.get(own); ok {
			return &lossCall{hold(f)}
		}
	}
	name := x.class.name
	for at := range name {
		for i, k := range d.keys {
			if strings.HasPrefix(name[at:], k.(string)) {
				return &lossCall{hold(d.values[i])}
			}
		}
	}
	v, _ := d.get("ForCausalLM") // the default
	return &lossCall{hold(v)}
}

// lossCall is a loss function, counted as a part of the model of that name.
type lossCall struct{ f value }

// postInit initializes what is not yet, and ties what is to be shared.
func (m *Machine) postInit(x *instance) {
	init := x.class.lookup("_init_weights")
	m.t.NoGrad(func() {
		m.walk(x, true, func(part *instance) {
			s := stateOf(part)
			if s.initialized {
				return
			}
			s.initialized = true
			m.drop(m.invoke(init, &args{pos: []value{x, part}}))
		})
	})
	m.tie(x)
}

// initWeights is _init_weights: all but rotary embeddings are filled in place.
func (m *Machine) initWeights(part *instance) {
	if _, ok := part.fields.get("original_inv_freq"); !ok || !strings.Contains(part.class.name, "RotaryEmbedding") {
		return
	}
	kind := m.getattr(part, "rope_type")
	var f value
	switch name := "compute_default_rope_parameters"; {
	case kind == "axial":
		name = "compute_axial_rope_parameters"
		fallthrough
	case kind == "default":
		var ok bool
		if f, ok = m.optional(part, name); !ok { // transformers 4 computes them once
			return
		}
	case part.class.lookup(name) == nil:
		return
	default:
		f = m.item(m.resolveImport(&lazyImport{"transformers.modeling_rope_utils", "ROPE_INIT_FUNCTIONS"}), kind)
	}
	m.drop(m.call(f, m.getattr(part, "config")))
	m.drop(f)
}

// addEmbeddingMethods adds what models say of their embeddings unless they know better
// (EmbeddingAccessMixin, transformers/modeling_utils.py).
func (m *Machine) addEmbeddingMethods(set func(name string, f func(m *Machine, x *instance, a []value) value)) {
	set("get_input_embeddings", func(m *Machine, x *instance, _ []value) value {
		name := "embed_tokens"
		if own, ok := x.class.lookup("_input_embed_layer").(string); ok {
			name = own
		}
		if v, ok := m.optional(x, name); ok {
			return v
		}
		for _, part := range []string{"embeddings", "model"} {
			if within, ok := m.optional(x, part); ok && within != (none{}) {
				if v, ok := m.optional(within, name); ok {
					return v
				}
			}
		}
		base, _ := x.class.lookup("base_model_prefix").(string)
		for _, part := range []string{"language_model", base} {
			if within, ok := x.fields.get(part); ok {
				if f, ok := m.optional(within, "get_input_embeddings"); ok {
					return m.call(f)
				}
			}
		}
		panic(raise("NotImplementedError", "`get_input_embeddings` not auto‑handled for %s", x.class.name))
	})
	set("get_output_embeddings", func(m *Machine, x *instance, _ []value) value {
		if v, ok := m.optional(x, "lm_head"); ok {
			return v
		}
		return none{}
	})
	for _, part := range []string{"encoder", "decoder"} {
		set("get_"+part, func(m *Machine, x *instance, _ []value) value {
			if v, ok := m.optional(x, part); ok {
				return v
			}
			base, _ := x.class.lookup("base_model_prefix").(string)
			if within, ok := x.fields.get(base); ok {
				return m.call(m.getattr(within, "get_"+part))
			}
			return hold(x)
		})
	}
	set("can_generate", func(*Machine, *instance, []value) value { return false })
	pretrained := m.types["PreTrainedModel"]
	pretrained.attrs["device"] = &property{get: &builtin{"device", func(*Machine, *args) value { return device{} }}}
	pretrained.attrs["base_model"] = &property{get: &builtin{"base_model", func(m *Machine, a *args) value {
		x := a.pos[0].(*instance)
		base, _ := x.class.lookup("base_model_prefix").(string)
		if v, ok := x.fields.get(base); ok {
			return hold(v)
		}
		return hold(x)
	}}}
}

// lookForPadding is warn_if_padding_and_no_attention_mask: pad_token_id in
// input_ids[:, [-1, 0]]. What comes of it is a warning at most.
func (m *Machine) lookForPadding(x *instance, ids, mask value) {
	config, _ := x.fields.get("config")
	if pad, ok := m.optional(config, "pad_token_id"); mask != (none{}) || !ok || pad == (none{}) {
		return
	}
	t := m.t
	columns := t.Full(torch.Int64, 2)
	ends := t.Full(torch.Int64, ids.(*tensor).x.Dim(0), 2)
	t.Drop(columns)
	equal := t.Compare(ends.Borrow())
	found := t.All(equal.Borrow())
	t.Drop(equal)
	t.Drop(found)
	t.Drop(ends)
}
