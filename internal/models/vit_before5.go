package models

import "memorymark/internal/torch"

// This file is ViT as transformers 4.57 has it: keys and values are projected before
// queries, norms come last among a layer's parameters, and initializing weights of 16
// bits allocates them again.

// isOf4 reports whether the model is one of transformers 4.
func (m *vit) isOf4() bool { return m.run.Versions.Transformers.Before(5, 0) }

// newLayer4 makes ViTLayer, parameters in the order of its constructors.
func (m *vit) newLayer4(t *torch.Torch) vitLayer {
	c, h, dtype := m.cfg, m.cfg.HiddenSize, m.run.DType
	return vitLayer{
		query:      t.NewLinear(h, h, c.QKVBias, dtype).Named("attention.attention.query"),
		key:        t.NewLinear(h, h, c.QKVBias, dtype).Named("attention.attention.key"),
		value:      t.NewLinear(h, h, c.QKVBias, dtype).Named("attention.attention.value"),
		output:     t.NewLinear(h, h, true, dtype).Named("attention.output.dense"),
		fc1:        t.NewLinear(h, c.IntermediateSize, true, dtype).Named("intermediate.dense"),
		fc2:        t.NewLinear(c.IntermediateSize, h, true, dtype).Named("output.dense"),
		normBefore: t.NewLayerNorm(h, dtype),
		normAfter:  t.NewLayerNorm(h, dtype),
	}
}

// initWeights is what ViTModel does with _init_weights, in the order of its modules.
func (m *vit) initWeights(t *torch.Torch) {
	m.initWeight(t, m.projection.Weight, m.position, m.class)
	for i := range m.layers {
		l := &m.layers[i]
		m.initWeight(t, l.query.Weight, l.key.Weight, l.value.Weight, l.output.Weight, l.fc1.Weight, l.fc2.Weight)
	}
	if m.pooler != nil {
		m.initWeight(t, m.pooler.Weight)
	}
}

// initWeight is weight.data = trunc_normal_(weight.data.to(torch.float32)).to(dtype) of
// ViTPreTrainedModel._init_weights. Transformers 5 fills weights where they are.
func (m *vit) initWeight(t *torch.Torch, weights ...*torch.Tensor) {
	if !m.isOf4() {
		return
	}
	for _, w := range weights {
		t.InitializeIn(torch.Float32, w)
	}
}

// layer4 is ViTLayer.forward.
func (m *vit) layer4(t *torch.Torch, i int, input *torch.Var) torch.Value {
	f, l := t.Enter(input).In("encoder.layer", i), &m.layers[i]
	hidden := f.Let(input)
	attended := f.Let(m.attention4(t, l, f.Let(t.LayerNorm(hidden, l.normBefore))))
	hidden.Set(t.Add(attended, hidden))
	output := f.Let(t.LayerNorm(hidden, l.normAfter))
	output.Set(m.intermediate4(t, l, output))
	output.Set(m.output4(t, l, output, hidden))
	return f.Return(output)
}

// attention4 is ViTAttention.forward.
func (m *vit) attention4(t *torch.Torch, l *vitLayer, normed *torch.Var) torch.Value {
	f := t.Enter().In("attention")
	context, weights := m.selfAttention4(t, l, normed)
	attended := f.Let(context)
	f.Let(weights)
	g := t.Enter().In("output")
	out := g.Let(t.Linear(attended, l.output))
	out.Set(t.Dropout(out, m.cfg.HiddenDropout, m.run.Train))
	return f.Return(f.Let(g.Return(out)))
}

// selfAttention4 is ViTSelfAttention.forward.
func (m *vit) selfAttention4(t *torch.Torch, l *vitLayer, hidden *torch.Var) (context, weights torch.Value) {
	f := t.Enter().In("attention")
	b, s, size := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1), m.cfg.HiddenSize/m.cfg.Heads
	split := func(p *torch.Linear) *torch.Var {
		return f.Let(t.Transpose(t.View(t.Linear(hidden, p), b, s, -1, size), 1, 2))
	}
	k, v, q := split(l.key), split(l.value), split(l.query)
	o := groupedOptions{eager: m.run.Eager, everywhere: true, dropout: m.run.dropout(m.cfg.AttentionDropout)}
	attended, weights := groupedAttention(t, o, q, k, v, f.Let(torch.Value{}))
	out := f.Let(attended)
	out.Set(t.Reshape(out, b, s, -1))
	return f.Return(out), weights
}

// intermediate4 is ViTIntermediate.forward.
func (m *vit) intermediate4(t *torch.Torch, l *vitLayer, x *torch.Var) torch.Value {
	f := t.Enter(x).In("intermediate")
	hidden := f.Let(t.Linear(x, l.fc1))
	hidden.Set(m.act(t, hidden))
	return f.Return(hidden)
}

// output4 is ViTOutput.forward.
func (m *vit) output4(t *torch.Torch, l *vitLayer, x, residual *torch.Var) torch.Value {
	f := t.Enter(x).In("output")
	hidden := f.Let(t.Linear(x, l.fc2))
	hidden.Set(t.Dropout(hidden, m.cfg.HiddenDropout, m.run.Train))
	hidden.Set(t.Add(hidden, residual))
	return f.Return(hidden)
}
