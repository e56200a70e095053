package pymodule

// This file is transformers/utils/output_capturing.py: what hooks record of the modules
// within a model.

// recording is what is recorded while a model runs.
type recording struct {
	kind  *class // of the modules
	index int64  // of what they return, if that is a tuple
	into  *list
}

// captureOutputs is the decorator of that name.
var captureOutputs = &builtin{"capture_outputs", func(_ *Machine, a *args) value {
	if len(a.pos) == 1 {
		return captured(hold(a.pos[0]))
	}
	return &builtin{"capture_outputs", func(_ *Machine, a *args) value { return captured(hold(a.pos[0])) }}
}}

func captured(f value) value {
	return &builtin{"wrapper", func(m *Machine, a *args) value {
		self := a.pos[0].(*instance)
		outer := m.recordings
		defer func() { m.recordings = outer }()
		m.recordings = nil
		var keys []value
		var collected []*list
		kinds, _ := self.class.lookup("_can_record_outputs").(*dict)
		for i := 0; kinds != nil && i < len(kinds.keys); i++ {
			if key := kinds.keys[i].(string); m.wantsOutput(self, "output_"+key, a) {
				into := newList()
				m.recordings = append(m.recordings, recorder(key, kinds.values[i], into))
				keys, collected = append(keys, key), append(collected, into)
			}
		}
		out := m.invoke(f, a)
		for i, key := range keys {
			m.setattr(out, key.(string), &tuple{refs: refs{1}, items: collected[i].items})
		}
		return out
	}}
}

// wantsOutput reports whether the call or the configuration asks for an output.
func (m *Machine) wantsOutput(self *instance, name string, a *args) bool {
	on := a.get(-1, name)
	if on == nil {
		config, _ := self.fields.get("config")
		on, _ = m.optional(config, name)
	}
	return on != nil && m.truth(on)
}

// recorder is the OutputRecorder of a key.
func recorder(key string, v value, into *list) recording {
	if r, ok := v.(*instance); ok && r.class.name == "OutputRecorder" {
		kind, _ := r.fields.get("target_class")
		index, _ := r.fields.get("index")
		if k, ok := kind.(*class); ok && len(r.fields.names) == 2 {
			return recording{k, integer(index), into}
		}
	}
	panic(failure("capturing outputs (output_%s) is not known", key))
}

// record is the hook behind a module's forward.
func (m *Machine) record(x *instance, out value) {
	for _, r := range m.recordings {
		if !x.class.is(r.kind) {
			continue
		}
		if parts, ok := out.(*tuple); ok {
			out = parts.items[r.index]
		}
		r.into.items = append(r.into.items, hold(out))
	}
}
