package pymodule

import (
	"encoding/json"
	"fmt"
	"strings"

	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
)

// New makes the model of a configuration from its own source, as models.New does
// from what is written by hand.
func (l *Library) New(t *torch.Torch, c *hfconfig.Config, r models.Run) (model *models.Model, err error) {
	m := l.machine()
	defer m.catch(&err)
	if r.Adapter != nil || r.Quantize != torch.NotQuantized || r.Stage != nil || r.ChannelsLast {
		return nil, fmt.Errorf("adapters, quantized weights, stages and channels_last are not evaluated")
	}
	m.t, m.dtype, m.training = t, r.DType, r.Train
	config, err := m.configuration(c, r)
	if err != nil {
		return nil, err
	}
	module := strings.Replace(m.configurationModule(c.ModelType), ".configuration_", ".modeling_", 1)
	found := m.resolveImport(&lazyImport{module, c.Architecture})
	class, ok := found.(*class)
	if !ok {
		return nil, fmt.Errorf("%s of a %s is not in the source", c.Architecture, c.ModelType)
	}
	if class.lookup("_supports_sdpa") != true {
		m.setattr(config, "_attn_implementation", "eager")
	}
	var x *instance
	m.building = true
	t.As(trace.Parameter, func() { x = m.call(class, config).(*instance) })
	m.building, m.dtype = false, torch.Float32
	m.nameLayers(x)
	m.listParameters(x)
	m.cast(x, r.DType)
	if r.Checkpointing || r.NoCache { // loops set it, which copies of the configuration do not see
		m.setattr(config, "use_cache", false)
	}
	if r.Checkpointing {
		m.enableCheckpointing(x)
	}
	return &models.Model{
		Forward: func(_ *torch.Torch, b *models.Batch) models.Output { return m.forward(x, b) },
		End:     func() { l.idle.Put(m) },
	}, nil
}

// configurationModule is the module of a model type's configuration, "" if there is
// none: it is in the folder of that name, or of the start of it.
func (m *Machine) configurationModule(kind string) string {
	kind = strings.ReplaceAll(kind, "-", "_")
	for folder := kind; ; {
		for _, file := range []string{folder, kind} {
			if name := "transformers.models." + folder + ".configuration_" + file; m.library.trees.modules[name] != nil {
				return name
			}
		}
		at := strings.LastIndexByte(folder, '_')
		if at < 0 {
			return ""
		}
		folder = folder[:at]
	}
}

// configuration makes the object of a configuration's own class.
func (m *Machine) configuration(c *hfconfig.Config, r models.Run) (value, error) {
	name := m.configurationModule(c.ModelType)
	if name == "" {
		return nil, fmt.Errorf("the configuration of a %s is not in the source", c.ModelType)
	}
	var kind *class
	for _, n := range m.library.trees.modules[name].root.kids[0].kids {
		if n.kind != "ClassDef" {
			continue
		}
		if k, ok := m.module(name).(*namespace).load(m, n.text).(*class); ok && k.attrs["model_type"] == c.ModelType {
			kind = k
		}
	}
	if kind == nil {
		return nil, fmt.Errorf("no class of %s is of the model type %s", name, c.ModelType)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	v, err := m.fromJSON(data)
	if err != nil {
		return nil, err
	}
	var a args
	for i, k := range v.(*dict).keys {
		if k != "model_type" {
			a.names, a.named = append(a.names, k.(string)), append(a.named, v.(*dict).values[i])
		}
	}
	if _, head, err := models.Find(c); err == nil {
		for _, key := range head.Needs {
			if a.get(-1, key) == nil {
				a.names, a.named = append(a.names, key), append(a.named, int64(0))
			}
		}
	}
	config := m.callOwned(kind, a)
	attention := "sdpa"
	if r.Eager {
		attention = "eager"
	}
	m.setattr(config, "_attn_implementation", attention)
	m.setattr(config, "_experts_implementation", "grouped_mm")
	return config, nil
}

// forward calls the model on a batch.
func (m *Machine) forward(x *instance, b *models.Batch) (out models.Output) {
	var a args
	give := func(name string, p *torch.Tensor, f fact) {
		if p != nil {
			a.names = append(a.names, name)
			a.named = append(a.named, &tensor{refs: refs{1}, x: m.t.Hold(torch.Borrow(p)).Tensor(), fact: f})
		}
	}
	mask := always(1)
	if b.Padded {
		mask = fact{kind: mixed}
	}
	give("input_ids", b.IDs, fact{kind: tokens})
	give("pixel_values", b.Pixels, fact{})
	give("input_features", b.Features, fact{})
	give("attention_mask", b.Mask, mask)
	give("decoder_input_ids", b.DecoderIDs, fact{})
	give("labels", b.Labels, fact{})
	give("start_positions", b.Starts, fact{})
	give("end_positions", b.Ends, fact{})
	give("num_items_in_batch", b.Items, fact{})
	result, err := m.attempt(func() value { return m.callOwned(x, a) })
	if err != nil {
		panic(torch.Interruption{Err: err})
	}
	return m.output(result)
}

// attempt calls what may fail.
func (m *Machine) attempt(call func() value) (out value, err error) {
	defer m.catch(&err)
	return call(), nil
}

// output is what a model returns, as loops have it: its tensors, in the order in
// which they go with the object.
func (m *Machine) output(v value) models.Output {
	x, ok := v.(*instance)
	if !ok || x.items == nil {
		panic(torch.Interruption{Err: fmt.Errorf("the model returns a %s", typeName(v))})
	}
	var loss, logits *tensor
	if l, ok := x.items.get("loss"); ok {
		loss = l.(*tensor)
	}
	for i, k := range x.items.keys {
		if y, ok := x.items.values[i].(*tensor); ok && k != "loss" {
			logits = y
			break
		}
	}
	cached := make(map[*tensor]bool)
	if cache, ok := x.items.get("past_key_values"); ok {
		reach(cache, cached)
	}
	var gone []*tensor
	m.gone = &gone
	m.drop(v)
	m.gone = nil
	var out models.Output
	for _, y := range gone {
		v := torch.ValueOf(y.x)
		switch y {
		case loss:
			out.Loss = v
		case logits:
			out.Logits = v
		default:
			if cached[y] {
				out.Cache = append(out.Cache, v)
			} else {
				out.Rest = append(out.Rest, v)
			}
		}
	}
	return out
}

// reach notes the tensors that an object has.
func reach(v value, into map[*tensor]bool) {
	switch x := v.(type) {
	case *tensor:
		into[x] = true
	case *list:
		for _, item := range x.items {
			reach(item, into)
		}
	case *instance:
		for _, item := range x.fields.values {
			reach(item, into)
		}
	}
}
