package pymodule

import (
	"encoding/json"
	"fmt"
	"slices"

	"memorymark/internal/hfconfig"
	"memorymark/internal/models"
	"memorymark/internal/torch"
	"memorymark/internal/trace"
)

// New makes the model of a configuration from its own source, as models.New does
// from what is written by hand.
func (l *Library) New(t *torch.Torch, c *hfconfig.Config, r models.Run) (model *models.Model, err error) {
	if l = l.of(r.Versions); l == nil {
		return nil, fmt.Errorf("this program was built without the source of transformers %v: run make models, then build it again", r.Versions.Transformers)
	}
	m := l.machine()
	defer m.catch(&err)
	if r.Stage != nil {
		return nil, failure("a stage of a pipeline is not known")
	}
	m.t, m.budget, m.dtype, m.training = t, t.Budget, r.DType, r.Train
	config, err := m.configuration(c)
	if err != nil {
		return nil, err
	}
	class := m.modelClass(c.ModelType, c.Architecture)
	if class == nil {
		return nil, fmt.Errorf("%s of a %s is not in the source", c.Architecture, c.ModelType)
	}
	m.chooseAttention(class, config, r)
	var x *instance
	m.building = true
	t.As(trace.Parameter, func() { x = m.call(class, config).(*instance) })
	m.model, m.building, m.dtype = x, false, torch.Float32
	m.nameLayers(x)
	m.listParameters(x)
	m.toCard(x)
	m.cast(x, r)
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

// configuration makes the object of a configuration's own class.
func (m *Machine) configuration(c *hfconfig.Config) (value, error) {
	kind := m.configurationOf(c.ModelType)
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	v, err := m.fromJSON(data)
	if err != nil {
		return nil, err
	}
	var a args
	harmless(v.(*dict))
	m.leavePrivate(kind, v.(*dict))
	for i, k := range v.(*dict).keys {
		if k != "model_type" {
			a.names, a.named = append(a.names, k.(string)), append(a.named, v.(*dict).values[i])
		}
	}
	config := m.callOwned(kind, a)
	if _, head, err := models.Find(c); err == nil {
		for _, key := range head.Needs {
			if v, _ := m.optional(config, key); v == nil || v == (none{}) {
				m.setattr(config, key, int64(0))
			}
		}
	}
	m.setImplementation(config, "_experts_implementation", "grouped_mm")
	return config, nil
}

// chooseAttention says what attention a model and its parts have: eager where a class
// has no other.
func (m *Machine) chooseAttention(kind *class, config value, r models.Run) {
	choice := "sdpa"
	if r.Eager || kind.lookup("_supports_sdpa") != true {
		choice = "eager"
	}
	m.setImplementation(config, "_attn_implementation", choice)
}

// never are keys of a config.json that a configuration does not get to see: they choose
// kernels, weights and code, or what the workload decides (the prober's keys.py).
var never = []string{
	"attn_implementation", "_attn_implementation", "_attn_implementation_internal", "experts_implementation", "_experts_implementation",
	"_experts_implementation_internal", "auto_map", "custom_pipelines", "name_or_path", "_name_or_path", "_commit_hash", "per_layer_config",
	"dtype", "torch_dtype", "transformers_weights", "transformers_version", "architectures", "use_pretrained_backbone",
}

// harmless takes those keys away. A configuration within another keeps its type.
func harmless(d *dict) {
	kept := newDict()
	for i, k := range d.keys {
		if slices.Contains(never, k.(string)) {
			continue
		}
		if within, ok := d.values[i].(*dict); ok {
			harmless(within)
		}
		kept.set(nil, k, d.values[i])
	}
	d.index, d.keys, d.values = kept.index, kept.keys, kept.values
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
	ids := fact{kind: tokens, value: m.vocabulary(x)}
	give("input_ids", b.IDs, ids)
	give("pixel_values", b.Pixels, fact{})
	give("input_features", b.Features, fact{})
	give("attention_mask", b.Mask, mask)
	give("decoder_input_ids", b.DecoderIDs, ids)
	give("labels", b.Labels, ids)
	give("start_positions", b.Starts, fact{})
	give("end_positions", b.Ends, fact{})
	give("num_items_in_batch", b.Items, fact{})
	result, err := m.attempt(func() value { return m.callOwned(x, a) })
	if err != nil {
		panic(torch.Interruption{Err: err})
	}
	return m.output(result)
}

// vocabulary is how many tokens the text of a model has, 0 if it does not say.
func (m *Machine) vocabulary(model *instance) float64 {
	config, _ := model.fields.get("config")
	text := m.call(m.getattr(config, "get_text_config"))
	defer m.drop(text)
	n, _ := m.whole(text, "vocab_size")
	return float64(n)
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
	loss, balance := x.output("loss"), x.output("aux_loss")
	var logits *tensor
	for _, v := range x.items.values {
		if y, ok := v.(*tensor); ok && y != loss && y != balance {
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
		case balance:
			out.Balance = v
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

// output is a tensor that a model returns, nil if it has none of that name.
func (x *instance) output(name string) *tensor {
	v, _ := x.items.get(name)
	y, _ := v.(*tensor)
	return y
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
