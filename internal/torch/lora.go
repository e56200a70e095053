package torch

import (
	"fmt"
	"slices"
	"strings"

	"memorymark/internal/trace"
)

// This file is LoRA as PEFT 0.21 makes it: all parameters of a model are
// frozen, and layers get two small ones in addition (peft/tuners/lora/layer.py,
// model.py).

// LoRA is the part of peft.LoraConfig that affects memory.
type LoRA struct {
	Rank      int64
	AllLinear bool     // "all-linear": every layer but the model's output
	Targets   []string // else the ends of the names of the layers
	Except    []string // ends of the names of layers that "all-linear" leaves alone
	// Parameters are ends of the names of parameters that get their own adapter
	// (target_parameters).
	Parameters []string
	Dropout    float64
	DoRA       bool
	PEFT       Version
	Save       []string // modules_to_save
	Heads      []string // of the task: trained whole, where the model has them
	LateHeads  bool     // which PEFT looks for after adding adapters
	DType      DType    // of the adapters
	Train      bool     // the mode of the model
}

// lora is PEFT's wrapper of a layer.
type lora struct {
	a, b      *Linear
	magnitude *Tensor // of the rows of the weight, for DoRA; else nil
	dropout   float64
	train     bool
	peft      Version
}

// AddLoRA is peft.get_peft_model. It returns the names of targets and of
// modules to save that the model does not have.
func (t *Torch) AddLoRA(c LoRA) (unknown []string) {
	for _, p := range t.parameters {
		p.requiresGrad = false
	}
	met := make(map[string]bool)
	for _, m := range t.linears {
		if c.targets(m, met) {
			t.wrap(m, c)
		}
	}
	t.wrapStacks(&c)
	t.saveModules(slices.Concat(c.Save, c.Heads), met)
	t.castAdapters(c.DType)
	for _, name := range slices.Concat(c.Targets, c.Save) {
		if !met[name] {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// CheckLoRA says why PEFT fails to add an adapter.
func (t *Torch) CheckLoRA(c LoRA) error {
	early := c
	early.Heads = nil
	for _, m := range t.linears {
		in := func(name string) bool { return within(m.name, name) }
		switch whole := slices.Concat(c.Save, c.Heads); {
		case m.quantized != nil && slices.ContainsFunc(whole, in):
			// _set_layer_requires_grad of the copy (peft/utils/other.py)
			return fmt.Errorf("adapter: %s is to be trained whole, but its weight is quantized, and PEFT fails: integers have no gradient; leave out task_type and modules_to_save, or quantize", m.name)
		case c.LateHeads && slices.ContainsFunc(c.Heads, in) && early.targets(m, make(map[string]bool)):
			// ModulesToSaveWrapper.check_module (peft/utils/other.py)
			return fmt.Errorf("adapter: %s is a target, and task_type has PEFT train it whole, which fails; leave task_type out, or name other targets", m.name)
		}
	}
	return nil
}

// targets reports whether a layer gets an adapter, and records the target that
// matched (_maybe_include_all_linear_layers, check_target_module_exists,
// peft/tuners/tuners_utils.py).
func (c *LoRA) targets(m *Linear, met map[string]bool) bool {
	if slices.ContainsFunc(slices.Concat(c.Save, c.Heads), func(name string) bool { return within(m.name, name) }) {
		return false
	}
	if c.AllLinear {
		return !m.output && !slices.ContainsFunc(c.Except, func(name string) bool { return endsWith(m.name, name) })
	}
	found := false
	for _, target := range c.Targets {
		if endsWith(m.name, target) {
			met[target], found = true, true
		}
	}
	return found
}

// endsWith reports whether a path is a name or ends with it.
func endsWith(path, name string) bool { return path == name || strings.HasSuffix(path, "."+name) }

// within reports whether a path has a name among its parts.
func within(path, name string) bool {
	return strings.Contains("."+path+".", "."+name+".")
}

// wrap makes the adapter of a layer: on the CPU, then on the device in the
// layer's type (_move_adapter_to_device_of_base_layer).
func (t *Torch) wrap(m *Linear, c LoRA) {
	out, in := m.Weight.Shape[0], m.Weight.Shape[1]
	if m.conv1D {
		in, out = out, in
	}
	last := m.Weight
	if m.Bias != nil {
		last = m.Bias
	}
	dtype := m.Weight.DType
	switch {
	case m.quantized == nil:
	case m.quantized.kind == Int8:
		dtype = Float32 // an adapter cannot be of integers
	default:
		dtype = m.quantized.compute // compute_dtype of a Linear4bit
	}
	m.lora = &lora{dropout: c.Dropout, train: c.Train, peft: c.PEFT}
	m.lora.a = &Linear{Weight: t.parameterAfter(last, dtype, c.Rank, in)}
	m.lora.b = &Linear{Weight: t.parameterAfter(m.lora.a.Weight, dtype, out, c.Rank)}
	if c.DoRA {
		t.initMagnitude(m)
	}
}

// castAdapters casts all adapters to their type, in the order of the model's
// parameters.
func (t *Torch) castAdapters(dtype DType) {
	adapters := make(map[*Tensor]*lora)
	for _, m := range t.linears {
		if m.lora != nil {
			adapters[m.lora.a.Weight] = m.lora
		}
	}
	for _, m := range t.stacks {
		if m.lora != nil {
			adapters[m.lora.a.Weight] = m.lora
		}
	}
	for _, p := range t.parameters {
		t.castAdapter(adapters[p], dtype)
	}
}

// castAdapter casts an adapter to its type (cast_adapter_dtype).
func (t *Torch) castAdapter(l *lora, dtype DType) {
	if l == nil {
		return
	}
	t.castData(l.a.Weight, dtype)
	t.castData(l.b.Weight, dtype)
	if l.magnitude != nil {
		t.castData(l.magnitude, dtype)
	}
}

// castData is p.data = p.data.to(dtype): the parameter stays, its memory is
// new.
func (t *Torch) castData(p *Tensor, dtype DType) {
	if p.DType == dtype {
		return
	}
	old := p.storage
	p.DType = dtype
	t.As(trace.Parameter, func() { p.storage = t.allocate(p.Numel() * dtype.Size()) })
	if t.meta != nil {
		t.meta.insert(p.storage, old, true)
	}
	t.drop(old)
}

// parameterAfter makes a parameter that is listed after another one.
func (t *Torch) parameterAfter(other *Tensor, dtype DType, shape ...int64) *Tensor {
	p := t.parameter(dtype, shape...)
	t.parameters = t.parameters[:len(t.parameters)-1]
	t.listAfter(p, other)
	return p
}

func (t *Torch) listAfter(p, other *Tensor) {
	t.parameters = slices.Insert(t.parameters, indexIn(t, t.parameters, other)+1, p)
	if t.meta != nil {
		t.meta.insert(p.storage, other.storage, false)
	}
}

// saveModules is modules_to_save: a copy of a module is trained in its place
// (ModulesToSaveWrapper, peft/utils/other.py).
func (t *Torch) saveModules(names []string, met map[string]bool) {
	saved := func(path string) bool {
		for _, name := range names {
			if within(path, name) {
				met[name] = true
				return true
			}
		}
		return false
	}
	for _, m := range t.embeddings {
		if saved(m.name) {
			m.Weight = t.trainedCopy(m.Weight)
		}
	}
	for _, m := range t.linears {
		if !saved(m.name) {
			continue
		}
		m.Weight = t.trainedCopy(m.Weight)
		if m.Bias != nil {
			m.Bias = t.trainedCopy(m.Bias)
		}
	}
}

func (t *Torch) trainedCopy(p *Tensor) *Tensor {
	return t.parameterAfter(p, p.DType, p.Shape...)
}

// base is the layer without its adapter.
func (t *Torch) base(x X, m *Linear) Value {
	switch {
	case m.quantized != nil && m.quantized.kind == Int8:
		return t.linear8Bit(x, m)
	case m.quantized != nil:
		return t.linear4Bit(x, m)
	case m.conv1D:
		return t.conv1D(x, m)
	default:
		return t.plainLinear(x, m)
	}
}

// loraForward is lora.Linear.forward.
func (t *Torch) loraForward(x X, m *Linear) Value {
	if m.quantized != nil {
		return t.quantizedLoraForward(x, m)
	}
	f, l := t.Enter(x), m.lora
	in := f.Let(Borrow(read(x)))
	result := f.Let(t.base(in, m))
	dtype := result.tensor.DType
	in.Set(t.To(in, l.a.Weight.DType)) // _cast_input_dtype
	switch {
	case l.magnitude == nil:
		result.Set(t.Add(result, t.Scale(t.Linear(t.Linear(t.Dropout(in, l.dropout, l.train), l.a), l.b))))
	case l.peft.Before(0, 18):
		result.Set(t.addScaledRows(f, in, result, m))
	default:
		result.Set(t.withMagnitude(in, result, m))
	}
	result.Set(t.To(result, dtype))
	return f.Return(result)
}
