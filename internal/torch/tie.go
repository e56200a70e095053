package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// This file is what transformers does to parameters once they are made, and
// the order in which a model lists them.

// ListBefore lists a parameter before another: a module's own parameters come
// before those of the modules in it, whenever they were made
// (Module.named_parameters).
func (t *Torch) ListBefore(p, other *Tensor) {
	t.parameters = slices.DeleteFunc(t.parameters, func(q *Tensor) bool { return p == q })
	t.parameters = slices.Insert(t.parameters, slices.Index(t.parameters, other), p)
}

// TieHead is tie_weights of a head whose layer shares its weight with an
// embedding and its bias with a parameter of the head
// (transformers/modeling_utils.py). After each of the two, _adjust_bias pads
// the layer's bias to the size of the vocabulary, which copies it.
func (t *Torch) TieHead(m *Linear, e *Embedding, bias *Tensor) {
	t.Tie(m, e)
	t.padBias(m.Bias)
	own := m.Bias
	m.Bias = bias
	t.parameters = slices.DeleteFunc(t.parameters, func(p *Tensor) bool { return p == own })
	t.release(own)
	t.padBias(m.Bias)
}

// TieBiased is tie_weights of a layer that keeps its bias, which is padded, too.
func (t *Torch) TieBiased(m *Linear, e *Embedding) {
	t.Tie(m, e)
	t.padBias(m.Bias)
}

// padBias is bias.data = pad(bias.data, ...): the parameter stays, its memory
// is new.
func (t *Torch) padBias(p *Tensor) {
	old := p.storage
	t.As(trace.Parameter, func() { p.storage = t.allocate(p.Numel() * p.DType.Size()) })
	t.drop(old)
}
