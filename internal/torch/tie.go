package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// This file is what transformers does to parameters once they are made
// (PreTrainedModel.tie_weights), and the order in which a model lists them.

// PadBias is _adjust_bias: the data of a bias are padded to the size of the
// vocabulary, which copies them even if nothing is missing.
func (t *Torch) PadBias(p *Tensor) {
	old := p.storage
	t.As(trace.Parameter, func() { p.storage = t.allocate(p.Numel() * p.DType.Size()) })
	t.drop(old)
}

// ListBefore lists a parameter before another: a module's own parameters come
// before those of the modules in it, whenever they were made
// (Module.named_parameters).
func (t *Torch) ListBefore(p, other *Tensor) {
	t.parameters = slices.DeleteFunc(t.parameters, func(q *Tensor) bool { return p == q })
	t.parameters = slices.Insert(t.parameters, slices.Index(t.parameters, other), p)
}
