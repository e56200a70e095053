package torch

import (
	"slices"

	"memorymark/internal/trace"
)

// This file is AdamW8bit, PagedAdamW8bit and Lion of bitsandbytes
// (bitsandbytes/optim/optimizer.py, Optimizer2State and Optimizer1State). A step
// updates one parameter after the other in kernels without temporaries.

const (
	min8Bit   = 4096 // min_8bit_size: smaller parameters have their state in float32
	block8Bit = 256  // elements that share a scale
	minPaged  = 1e5  // elements whose state is paged
)

// state8Bit is the state of a parameter.
type state8Bit struct{ first, second, absmax1, absmax2 *Tensor }

func (o *Optimizer) stepAdamW8Bit(params []*Tensor) { o.step8Bit(params, false) }

func (o *Optimizer) stepPagedAdamW8Bit(params []*Tensor) { o.step8Bit(params, true) }

func (o *Optimizer) step8Bit(params []*Tensor, paged bool) {
	for _, p := range params {
		if o.bits8[p] != nil {
			continue
		}
		o.t.inModule(p.owner, func() {
			o.t.As(trace.OptimizerState, func() { o.bits8[p] = o.init8Bit(p, paged) })
		})
	}
}

// init8Bit is init_state. Trainer keeps the state of embeddings in float32
// (transformers/trainer.py, create_optimizer: register_module_override).
func (o *Optimizer) init8Bit(p *Tensor, paged bool) *state8Bit {
	t := o.t
	paged = paged && p.Numel() >= minPaged
	// Paged state comes from cudaMallocManaged, outside the allocator.
	buffer := func(dtype DType) *Tensor {
		if paged {
			return nil
		}
		return t.emptyLike(p, dtype)
	}
	if p.Numel() < min8Bit || o.trainers && t.isEmbedding(p) {
		return &state8Bit{first: buffer(Float32), second: buffer(Float32)}
	}
	if o.maps == nil { // name2qmap: 256 values for each state
		o.maps = []*Tensor{t.empty(Float32, block8Bit), t.empty(Float32, block8Bit)}
	}
	blocks := divUp(p.Numel(), block8Bit)
	return &state8Bit{
		first: buffer(Uint8), second: buffer(Uint8),
		absmax1: t.empty(Float32, blocks), absmax2: t.empty(Float32, blocks),
	}
}

// stepLion is Lion with one state of 32 bits.
func (o *Optimizer) stepLion(params []*Tensor) {
	for _, p := range params {
		if o.sgd[p] != nil {
			continue
		}
		o.t.inModule(p.owner, func() {
			o.t.As(trace.OptimizerState, func() { o.sgd[p] = o.t.emptyLike(p, Float32) })
		})
	}
}

// isEmbedding reports whether a parameter is the table of an embedding.
func (t *Torch) isEmbedding(p *Tensor) bool {
	return slices.ContainsFunc(t.embeddings, func(e *Embedding) bool { return e.Weight == p })
}
