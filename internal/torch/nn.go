package torch

import (
	"memorymark/internal/trace"
)

// This file holds the modules of torch.nn that own parameters: what they
// allocate when they are made, in the order of their constructors.

// Linear is nn.Linear, and what PEFT has put around it.
type Linear struct {
	Weight, Bias *Tensor

	name   string // the end of its path in named_modules(), "" if nobody said
	output bool   // it is what get_output_embeddings() returns
	conv1D bool   // its weight is [in, out]
	lora   *lora  // nil for none
	split  split  // over ranks
	head   int64  // size of the heads that its result is viewed as, 0 for none
	whole  bool   // its result is normalized as one

	quantized   *quantized // nil for a weight as it is
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

// Named says what the layer is called in the model: its path in
// named_modules(), from where it is told from all others.
func (m *Linear) Named(name string) *Linear {
	m.name = name
	return m
}

// Derived says that the class of the layer is derived from torch.nn.Linear, as that of a
// torch.nn.MultiheadAttention's out_proj is.
func (m *Linear) Derived() *Linear {
	m.derived = true
	return m
}

// InHeads says that the layer's result is viewed as heads of a size.
func (m *Linear) InHeads(size int64) *Linear {
	m.head = size
	return m
}

// NormedWhole says that a norm takes all of the layer's result.
func (m *Linear) NormedWhole() { m.whole = true }

// AsOutput says that the layer is the model's output embedding
// (get_output_embeddings), and what it is called.
func (m *Linear) AsOutput(name string) *Linear {
	m.name, m.output = name, true
	return m
}

// InFloat32 says that _keep_in_fp32_modules names the layer: it is not quantized.
func (m *Linear) InFloat32() *Linear {
	m.keepFloat32 = true
	return m
}

// LayerNorm is nn.LayerNorm.
type LayerNorm struct{ Weight, Bias *Tensor }

// NewLayerNorm makes a layer.
func (t *Torch) NewLayerNorm(size int64, dtype DType) *LayerNorm {
	return &LayerNorm{Weight: t.parameter(dtype, size), Bias: t.bias(dtype, size)}
}

// RMSNorm is the weight of a norm by the root of the mean square, which models
// write out.
type RMSNorm struct{ Weight *Tensor }

// NewRMSNorm makes a layer.
func (t *Torch) NewRMSNorm(size int64, dtype DType) *RMSNorm {
	return &RMSNorm{Weight: t.parameter(dtype, size)}
}

// Embedding is nn.Embedding.
type Embedding struct {
	Weight *Tensor

	name  string // the end of its path in named_modules(), "" if nobody said
	input bool   // it is what get_input_embeddings() returns
}

// NewEmbedding makes a table.
func (t *Torch) NewEmbedding(rows, size int64, dtype DType) *Embedding {
	m := &Embedding{Weight: t.parameter(dtype, rows, size)}
	t.embeddings = append(t.embeddings, m)
	return m
}

// AsInput says that the table is the model's input embedding
// (get_input_embeddings), and what it is called.
func (m *Embedding) AsInput(name string) *Embedding {
	m.name, m.input = name, true
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

// Named says what its module calls a parameter that is no weight.
func (x *Tensor) Named(name string) *Tensor {
	x.name = name
	return x
}

// Adopt is nn.Parameter(x): it takes a tensor over, with its memory.
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

// Discard takes a parameter from its layer, which has another or none in its place.
func (t *Torch) Discard(p *Tensor) {
	t.unlist(p)
	t.release(p)
}

// Tie makes a layer's weight an embedding's table, as post_init does for heads
// that share it: the weight of the layer's own goes, from memory and from the
// parameters (transformers/modeling_utils.py, tie_weights).
func (t *Torch) Tie(m *Linear, e *Embedding) { t.tie(&m.Weight, e.Weight) }

// TieTable is Tie of a table that another one stands for.
func (t *Torch) TieTable(m, e *Embedding) { t.tie(&m.Weight, e.Weight) }

func (t *Torch) tie(own **Tensor, shared *Tensor) {
	old := *own
	*own = shared
	if t.meta != nil {
		t.meta.tied(old.storage, shared.storage)
	}
	t.unlist(old)
	t.release(old)
}

func (t *Torch) parameter(dtype DType, shape ...int64) *Tensor {
	var p *Tensor
	t.As(trace.Parameter, func() { p = t.empty(dtype, shape...) })
	p.requiresGrad = true
	p.unread = true
	t.parameters = append(t.parameters, p)
	return p
}

// ParameterCount returns the number of elements of all parameters, or some
// number beyond all models for more than can be counted.
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
	return b
}

func (t *Torch) workspace(bytes int64) {
	t.inModule(t.root, func() { t.As(trace.Workspace, func() { t.allocate(bytes) }) })
}

// passingWorkspace is one that is given back when the call is over.
func (t *Torch) passingWorkspace(bytes int64) {
	t.As(trace.Workspace, func() { t.scratchWith(bytes) })
}
