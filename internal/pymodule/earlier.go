package pymodule

// This file is what transformers 4 had and 5 has not.

// earlierFields are what every configuration had in addition to those of now.
var earlierFields = map[string]value{
	"is_decoder": false, "add_cross_attention": false, "cross_attention_hidden_size": none{}, "tie_word_embeddings": true, "tie_encoder_decoder": false,
	"torchscript": false, "use_return_dict": true, "bos_token_id": none{}, "pad_token_id": none{}, "eos_token_id": none{}, "sep_token_id": none{},
	"decoder_start_token_id": none{},
}

// earlierConfig makes PretrainedConfig, whose classes have constructors.
func earlierConfig(c *class) {
	for name, v := range earlierFields {
		c.attrs[name] = v
	}
	c.attrs["__init__"] = &builtin{"__init__", postInitConfig}
}

// before reports whether the library is an earlier one.
func (l *Library) before(major, minor int) bool {
	return l.version[0] < major || l.version[0] == major && l.version[1] < minor
}

// tieEarlier is tie_weights: the layer of what comes out takes the table of what goes in,
// and modules tie what they say.
func (m *Machine) tieEarlier(x *instance) {
	m.walk(x, false, func(part *instance) {
		if part.class.is(m.types["PreTrainedModel"]) {
			config, _ := part.fields.get("config")
			if on, ok := m.optional(config, "tie_word_embeddings"); !ok || on != false {
				m.tieTo(m.call(m.getattr(part, "get_output_embeddings")), m.call(m.getattr(part, "get_input_embeddings")))
			}
		}
		if f := part.class.lookup("_tie_weights"); f != nil {
			m.drop(m.call(f, hold(part)))
		}
	})
}

// tieTo is _tie_or_clone_weights.
func (m *Machine) tieTo(output, input value) {
	out, ok := output.(*instance)
	if !ok {
		return
	}
	in := input.(*instance)
	shared, _ := in.fields.get("weight")
	if old, _ := out.fields.get("weight"); same(old, shared) {
		return
	}
	to, from := stateOf(out), stateOf(in)
	out.fields.set(m, "weight", hold(shared))
	switch {
	case to.linear != nil && to.linear.Bias != nil:
		m.t.TieBiased(to.linear, from.embedding)
	case to.linear != nil:
		m.t.Tie(to.linear, from.embedding)
	case to.embedding != nil:
		m.t.TieTable(to.embedding, from.embedding)
	default:
		panic(failure("tying a %s is not known", out.class.name))
	}
	m.drop(output)
	m.drop(input)
}

// addMaskMethods are those of ModuleUtilsMixin (transformers/modeling_utils.py) that make
// masks, as they are written.
func addMaskMethods(model *class) {
	model.attrs["_tie_or_clone_weights"] = &builtin{"_tie_or_clone_weights", func(m *Machine, a *args) value {
		m.tieTo(hold(a.pos[1]), hold(a.pos[2]))
		return none{}
	}}
	for _, name := range []string{"get_extended_attention_mask", "invert_attention_mask", "get_head_mask"} {
		model.attrs[name] = &builtin{name, func(m *Machine, a *args) value {
			mixin, ok := m.source("transformers.modeling_utils").names["ModuleUtilsMixin"].(*class)
			if !ok {
				panic(raise("AttributeError", "'%s' object has no attribute '%s'", a.pos[0].(*instance).class.name, name))
			}
			return m.invoke(mixin.lookup(name), a)
		}}
	}
}

// mapsMasks is _vmap_for_bhqkv (transformers/masking_utils.py): a function of one sample,
// head, query and key is mapped over all of them. Each operator of it computes all that it
// needs.
func mapsMasks(_ *Machine, a *args) value {
	f := hold(a.pos[0])
	return &builtin{"mapped", func(m *Machine, a *args) value {
		m.mapped++
		defer func() { m.mapped-- }()
		given := &args{pos: make([]value, len(a.pos))}
		shape := make([]int64, len(a.pos))
		for i, v := range a.pos {
			x := v.(*tensor)
			along := []int64{1, 1, 1, 1}
			along[i] = x.x.Dim(0)
			shape[i] = along[i]
			given.pos[i] = m.known(m.t.View(in(x), along...), x.fact)
		}
		out := m.invoke(f, given)
		m.drop(f)
		m.dropAll(given.pos)
		defer m.drop(out)
		shape[1] = -1
		return m.known(m.t.Expand(in(out), shape...), fact{})
	}}
}
