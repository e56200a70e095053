package models

import (
	"memorymark/internal/torch"
)

// encoding is how an encoder runs: what its workload says of it, and what its
// layers share.
type encoding struct {
	train      bool
	checkpoint bool
	eager      bool
	act        activation
	heads      int64
	encoder    string // what the model calls it
	// Probabilities of dropout, of attention weights and of what layers give.
	attentionDropout, hiddenDropout float64
}

func newEncoding(c *bertConfig, r Run) (*encoding, error) {
	act, err := activationOf(c.HiddenAct)
	e := &encoding{
		encoder: "encoder",
		train:   r.Train, checkpoint: r.Checkpointing, eager: r.Eager, act: act, heads: c.Heads,
		attentionDropout: c.AttentionDropout, hiddenDropout: c.HiddenDropout,
	}
	return e, err
}

func (e *encoding) padding(b *Batch) padding {
	return padding{mask: b.Mask, ones: !b.Padded}
}

// layer is the forward function of an encoder's layer.
type layer func(t *torch.Torch, hidden, mask *torch.Var) torch.Value

// encode runs the layers one after the other: BertEncoder.forward.
func (e *encoding) encode(t *torch.Torch, layers []layer, embedded, mask *torch.Var) torch.Value {
	f := t.Enter().In(e.encoder)
	hidden := f.Let(embedded)
	for i, l := range layers {
		g := t.Enter().In("layer", i)
		hidden.Set(g.Return(e.call(t, l, hidden, mask)))
	}
	return f.Return(hidden)
}

// call is GradientCheckpointingLayer.__call__.
func (e *encoding) call(t *torch.Torch, l layer, hidden, mask *torch.Var) torch.Value {
	if !e.checkpoint || !e.train {
		return l(t, hidden, mask)
	}
	return t.CheckpointInputs(func(in []*torch.Var) torch.Value { return l(t, in[0], in[1]) }, hidden, mask)
}

// attend is a self attention's forward function, the same for all encoders:
// project, attend by the chosen implementation, join the heads. Its names are
// in the caller's frame. It returns the result and the weights, nothing for
// sdpa.
func (e *encoding) attend(t *torch.Torch, f *torch.Frame, hidden, mask *torch.Var, query, key, value *torch.Linear) (out *torch.Var, weights torch.Value) {
	b, s := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	q := e.projected(t, f, hidden, query)
	k := e.projected(t, f, hidden, key)
	v := e.projected(t, f, hidden, value)
	p := e.attentionDropout
	if !e.train {
		p = 0
	}
	var bias torch.X
	if mask.Tensor() != nil {
		bias = mask
	}
	var context torch.Value
	if e.eager {
		context, weights = eagerAttention(t, q, k, v, bias, p)
	} else {
		context = t.Contiguous(t.Transpose(t.Attention(q, k, v, bias, p, false, false), 1, 2))
	}
	joined := f.Let(context)
	joined.Set(t.Contiguous(t.Reshape(joined, b, s, -1)))
	return joined, weights
}

// projected names a projection of hidden states by its heads.
func (e *encoding) projected(t *torch.Torch, f *torch.Frame, hidden *torch.Var, m *torch.Linear) *torch.Var {
	return f.Let(e.split(t, t.Linear(hidden, m), hidden, m))
}

// split is a projection of hidden states by its heads.
func (e *encoding) split(t *torch.Torch, projection torch.X, hidden *torch.Var, m *torch.Linear) torch.Value {
	b, s, size := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1), m.Weight.Dim(0)/e.heads
	return t.Transpose(t.View(projection, b, s, -1, size), 1, 2)
}

// bertLayer is BertLayer.
type bertLayer struct {
	*encoding
	query, key, value, attentionOutput *torch.Linear
	attentionNorm                      *torch.LayerNorm
	intermediate, output               *torch.Linear
	outputNorm                         *torch.LayerNorm
}

func newBertLayers(t *torch.Torch, c *bertConfig, e *encoding, dtype torch.DType) []layer {
	layers := make([]layer, c.Layers)
	for i := range layers {
		l := &bertLayer{
			encoding:        e,
			query:           t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype).Named("attention.self.query"),
			key:             t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype).Named("attention.self.key"),
			value:           t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype).Named("attention.self.value"),
			attentionOutput: t.NewLinear(c.HiddenSize, c.HiddenSize, true, dtype).Named("attention.output.dense"),
			attentionNorm:   t.NewLayerNorm(c.HiddenSize, dtype),
			intermediate:    t.NewLinear(c.HiddenSize, c.IntermediateSize, true, dtype).Named("intermediate.dense"),
			output:          t.NewLinear(c.IntermediateSize, c.HiddenSize, true, dtype).Named("output.dense"),
			outputNorm:      t.NewLayerNorm(c.HiddenSize, dtype),
		}
		layers[i] = l.forward
	}
	return layers
}

func (l *bertLayer) forward(t *torch.Torch, hidden, mask *torch.Var) torch.Value {
	f := t.Enter(hidden)
	output, weights := l.selfAttention(t, hidden, mask)
	f.Let(weights) // self_attention_output, _ = ...
	attended := f.Let(output)
	return f.Return(f.Let(l.feedForward(t, attended)))
}

// selfAttention is BertAttention.forward.
func (l *bertLayer) selfAttention(t *torch.Torch, hidden, mask *torch.Var) (out, weights torch.Value) {
	f := t.Enter(hidden).In("attention")
	g := t.Enter().In("self")
	context, weights := l.attend(t, g, hidden, mask, l.query, l.key, l.value)
	attended := f.Let(g.Return(context))
	attended.Set(l.project(t, attended, hidden, l.attentionOutput, l.attentionNorm))
	return f.Return(attended), weights
}

// feedForward is BertIntermediate and BertOutput.
func (l *bertLayer) feedForward(t *torch.Torch, attended *torch.Var) torch.Value {
	f := t.Enter()
	middle := f.Let(t.In("intermediate", func() torch.Value { return l.act(t, t.Linear(attended, l.intermediate)) }))
	out := f.Let(l.project(t, middle, attended, l.output, l.outputNorm))
	return f.Return(out)
}

// project is BertSelfOutput and BertOutput.
func (l *bertLayer) project(t *torch.Torch, x, residual torch.X, dense *torch.Linear, norm *torch.LayerNorm) torch.Value {
	f := t.Enter(x, residual).In("output")
	h := f.Let(t.Linear(x, dense))
	h.Set(t.Dropout(h, l.hiddenDropout, l.train))
	h.Set(t.LayerNorm(t.Add(h, residual), norm))
	return f.Return(h)
}
