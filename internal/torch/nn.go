package torch

import (
	"memorymark/internal/trace"
)

// This file holds the modules of torch.nn that own parameters: what their
// constructors allocate, in order.

// Linear is nn.Linear, with PEFT's wrapper if it has one.
type Linear struct {
	Weight, Bias *Tensor

	name   string // the end of its path in named_modules(), "" if unknown
	output bool   // it is what get_output_embeddings() returns
	conv1D bool   // its weight is [in, out]
	lora   *lora  // nil for none
	split  split  // over ranks
	head   int64  // size of the heads its result is split into, 0 for none
	whole  bool   // its result is normalized as one

	quantized   *quantized // nil for an ordinary weight
	keepFloat32 bool       // _keep_in_fp32_modules names it
	derived     bool       // its class is derived from torch.nn.Linear
}

// NewLinear makes a layer; its weight first.
func (t *Torch) NewLinear(in, out int64, bias bool, dtype DType) *Linear {
	m := &Linear{Weight: t.parameter(dtype, out, in)}
	if bias {
		m.Bias = t.bias(dtype, out)
	}
	t.linears = append(t.linears, m)
	return m
}

// Named sets the layer's name in the model: the end of its path in
// named_modules() that distinguishes it from all others.
func (m *Linear) Named(name string) *Linear {
	m.name = name
	return m
}

// Derived marks a layer whose class is derived from torch.nn.Linear, such as the
// out_proj of torch.nn.MultiheadAttention.
func (m *Linear) Derived() *Linear {
	m.derived = true
	return m
}

// InHeads marks a layer whose result is split into heads of a size.
func (m *Linear) InHeads(size int64) *Linear {
	m.head = size
	return m
}

// NormedWhole marks a layer whose whole result is normalized.
func (m *Linear) NormedWhole() { m.whole = true }

// AsOutput marks the model's output embedding (get_output_embeddings) and names
// it.
func (m *Linear) AsOutput(name string) *Linear {
	m.name, m.output = name, true
	return m
}

// InFloat32 marks a layer that _keep_in_fp32_modules lists: it is not quantized.
func (m *Linear) InFloat32() *Linear {
	m.keepFloat32 = true
	return m
}

// LayerNorm is nn.LayerNorm.
type LayerNorm struct{ Weight, Bias *Tensor }

// NewLayerNorm makes a layer.
func (t *Torch) NewLayerNorm(size int64, dtype DType) *LayerNorm {
	return &LayerNorm{Weight: t.filled(dtype, size), Bias: t.bias(dtype, size)}
}

// RMSNorm is the weight of an RMS norm; models write out its forward.
type RMSNorm struct{ Weight *Tensor }

// NewRMSNorm makes a layer.
func (t *Torch) NewRMSNorm(size int64, dtype DType) *RMSNorm {
	return &RMSNorm{Weight: t.filled(dtype, size)}
}

// Embedding is nn.Embedding.
type Embedding struct {
	Weight *Tensor

	name  string // the end of its path in named_modules(), "" if unknown
	input bool   // it is what get_input_embeddings() returns
}

// NewPaddedEmbedding makes a table that has a row of zeros, for padding.
func (t *Torch) NewPaddedEmbedding(rows, size int64, dtype DType) *Embedding {
	m := t.NewEmbedding(rows, size, dtype)
	t.Launch()
	return m
}

// NewEmbedding makes a table.
func (t *Torch) NewEmbedding(rows, size int64, dtype DType) *Embedding {
	m := &Embedding{Weight: t.parameter(dtype, rows, size)}
	t.embeddings = append(t.embeddings, m)
	return m
}

// AsInput marks the model's input embedding (get_input_embeddings) and names
// it.
func (m *Embedding) AsInput(name string) *Embedding {
	m.name, m.input = name, true
	return m
}

// Named sets the end of the table's path in named_modules().
func (m *Embedding) Named(name string) *Embedding {
	m.name = name
	return m
}

// Freeze is requires_grad_(False) of the table.
func (m *Embedding) Freeze() *Embedding {
	m.Weight.requiresGrad = false
	return m
}

// Parameter makes an nn.Parameter. Modules list theirs in the order in which
// they are made, unless ListBefore says otherwise.
func (t *Torch) Parameter(dtype DType, shape ...int64) *Tensor { return t.parameter(dtype, shape...) }

// Named sets the attribute of a parameter that is not called weight.
func (x *Tensor) Named(name string) *Tensor {
	x.name = name
	return x
}

// Adopt is nn.Parameter(x): it takes over a tensor with its memory.
func (t *Torch) Adopt(v Value) *Tensor {
	p := v.tensor
	p.requiresGrad, p.unread = true, true
	if p.storage.id != trace.None {
		t.trace.Events[p.storage.event].For = trace.Parameter
	}
	t.parameters = append(t.parameters, p)
	return p
}

func (t *Torch) bias(dtype DType, size int64) *Tensor { return t.parameter(dtype, size).Named("bias") }

// Discard removes a parameter from its layer.
func (t *Torch) Discard(p *Tensor) {
	t.unlist(p)
	t.release(p)
}

// Tie makes a layer's weight an embedding's table, as post_init does for tied
// heads: the layer's own weight is freed and no longer a parameter
// (transformers/modeling_utils.py, tie_weights).
func (t *Torch) Tie(m *Linear, e *Embedding) { t.tie(&m.Weight, e.Weight) }

// TieTable is Tie of a table to another table.
func (t *Torch) TieTable(m, e *Embedding) { t.tie(&m.Weight, e.Weight) }

// TieWeight is Tie of a layer to another, which pads a bias as TieBiased does.
func (t *Torch) TieWeight(m, of *Linear) {
	t.tie(&m.Weight, of.Weight)
	if m.Bias != nil {
		t.padBias(m.Bias)
	}
}

// ShareWeight is module.weight = weight: the layer's own is freed.
func (t *Torch) ShareWeight(own **Tensor, weight *Tensor) { t.tie(own, weight) }

func (t *Torch) tie(own **Tensor, shared *Tensor) {
	old := *own
	*own = shared
	if t.meta != nil {
		t.meta.tie(old.storage, shared.storage)
	}
	t.unlist(old)
	t.release(old)
}

// filled makes a parameter of ones or zeros.
func (t *Torch) filled(dtype DType, shape ...int64) *Tensor {
	p := t.parameter(dtype, shape...)
	t.Launch()
	return p
}

func (t *Torch) parameter(dtype DType, shape ...int64) *Tensor {
	var p *Tensor
	t.As(trace.Parameter, func() { p = t.empty(dtype, shape...) })
	p.requiresGrad = true
	p.unread = true
	t.parameters = append(t.parameters, p)
	return p
}

// ParameterCount returns the number of elements of all parameters; on overflow
// a number beyond all models.
func (t *Torch) ParameterCount() int64 {
	if t.sharded() {
		return t.wholes
	}
	n := int64(0)
	for _, p := range t.parameters {
		if n += p.Numel(); n > 1<<62 {
			break
		}
	}
	return n
}

// Buffer makes a tensor that is part of a model but not trained.
func (t *Torch) Buffer(dtype DType, shape ...int64) *Tensor {
	var b *Tensor
	t.As(trace.Parameter, func() { b = t.empty(dtype, shape...) })
	t.Launch()
	return b
}

func (t *Torch) workspace(bytes int64) {
	t.inModule(t.root, func() { t.As(trace.Workspace, func() { t.allocate(bytes) }) })
}

// passingWorkspace is freed when the call is over.
func (t *Torch) passingWorkspace(bytes int64) {
	t.As(trace.Workspace, func() { t.scratchWith(bytes) })
}
