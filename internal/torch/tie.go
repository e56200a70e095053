package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// This file is what transformers does to parameters after they are made, and
// the order in which a model lists them.

// ListBefore lists a parameter before another: a module's own parameters come
// before those of the modules in it, whenever they were made
// (Module.named_parameters).
func (t *Torch) ListBefore(p, other *Tensor) {
	t.unlist(p)
	t.parameters = slices.Insert(t.parameters, indexIn(t, t.parameters, other), p)
}

// List lists all parameters in another order.
func (t *Torch) List(all []*Tensor) {
	place := make(map[*Tensor]int, len(all))
	for i, p := range all {
		if _, known := place[p]; !known { // the first module that has it
			place[p] = i
		}
	}
	slices.SortStableFunc(t.parameters, func(a, b *Tensor) int { return place[a] - place[b] })
}

// KeepOnly removes the parameters that are not in a model: its modules were made and dropped.
func (t *Torch) KeepOnly(model []*Tensor) {
	in := make(map[*Tensor]bool, len(model))
	for _, p := range model {
		in[p] = true
	}
	t.parameters = slices.DeleteFunc(t.parameters, func(p *Tensor) bool { return !in[p] })
}

// TieBiased is Tie of a layer with a bias: _adjust_bias pads it to the size of
// the vocabulary, which copies it (transformers/modeling_utils.py, tie_weights).
func (t *Torch) TieBiased(m *Linear, e *Embedding) {
	t.Tie(m, e)
	t.padBias(m.Bias)
}

// TieBias replaces the bias of a head's layer by the head's parameter, which is
// padded, too.
func (t *Torch) TieBias(m *Linear, bias *Tensor) {
	t.ShareBias(m, bias)
	t.padBias(m.Bias)
}

// ShareBias replaces a layer's bias, if it has one, by a parameter.
func (t *Torch) ShareBias(m *Linear, bias *Tensor) {
	own := m.Bias
	m.Bias = bias
	if own != nil {
		t.unlist(own)
		t.release(own)
	}
}

// padBias is bias.data = pad(bias.data, ...): the parameter stays, its memory
// is new.
func (t *Torch) padBias(p *Tensor) {
	old := p.storage
	t.As(trace.Parameter, func() { p.storage = t.allocate(p.Numel() * p.DType.Size()) })
	t.drop(old)
}

// TakeData is p.data = data: the parameter stays, its memory is that of the tensor.
func (t *Torch) TakeData(p, data *Tensor) {
	p.storage, data.storage = data.storage, p.storage
}

// InitializeIn is p.data = f(p.data.to(dtype)).to(p.dtype): a parameter of another type
// stays, its memory is new.
func (t *Torch) InitializeIn(dtype DType, p *Tensor) {
	if p.DType == dtype {
		return
	}
	cast := t.allocate(p.Numel() * dtype.Size())
	old := p.storage
	t.As(trace.Parameter, func() { p.storage = t.allocate(p.Numel() * p.DType.Size()) })
	if t.meta != nil {
		t.meta.insert(p.storage, old, true)
	}
	t.drop(cast)
	t.drop(old)
}
