package models

import (
	"errors"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var phi3Family = Family{Type: "phi3", read: reads(readPhi3), Heads: decoderHeads("Phi3", newPhi3, withoutSpans...)}

// phi3Config is transformers' Phi3Config, of Phi-3 and Phi-4.
type phi3Config struct {
	llamaConfig
	ResidualDropout float64  `json:"resid_pdrop"`
	RotaryFactor    *float64 `json:"partial_rotary_factor"`
}

// readPhi3 reads a configuration of Phi-3 or Phi-4.
func readPhi3(c *hfconfig.Config) (*phi3Config, error) {
	p := &phi3Config{llamaConfig: llamaConfig{
		VocabSize: 32064, HiddenSize: 3072, IntermediateSize: 8192, Layers: 32, Heads: 32, MaxPositions: 4096,
		HiddenAct: "silu", UseCache: true, NumLabels: 2,
	}}
	if err := p.decode(c, p, "silu"); err != nil {
		return nil, err
	}
	switch {
	case p.Rope() != DefaultRope:
		return nil, invalid.At("rope_scaling", errors.New("config: rope_scaling of a phi3 is not modelled"))
	case p.RotaryFactor != nil && *p.RotaryFactor != 1:
		return nil, invalid.At("partial_rotary_factor", errors.New("config: partial_rotary_factor of a phi3 is not modelled"))
	}
	return p, nil
}

// phi3 is what Phi3Model has in other ways than Llama: one product for queries,
// keys and values, one for both of the MLP's, and dropout of residuals
// (transformers/models/phi3/modeling_phi3.py).
type phi3 struct {
	*llama
	dropout float64
}

// newPhi3 makes the model, parameters in the order of its constructors. The
// joined products stand where Llama has queries and the gate.
func newPhi3(t *torch.Torch, c *phi3Config, r Run) *llama {
	m := &phi3{llama: newLlamaModel(&c.llamaConfig, r), dropout: c.ResidualDropout}
	m.layer, m.project, m.feed, m.anglesLast = m.phi3Layer, m.phi3Project, m.phi3MLP, true
	m.rotate = func(t *torch.Torch, _ int, q, k, cos, sin *torch.Var) { rotatePart(t, q, k, cos, sin) }
	m.embed = t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("embed_tokens")
	width, groups := c.Heads*c.HeadSize(), c.Groups()*c.HeadSize()
	for i := range c.Layers {
		m.layers = append(m.layers, llamaLayer{
			output:        t.NewLinear(width, c.HiddenSize, false, r.DType).Named("self_attn.o_proj"),
			query:         t.NewLinear(c.HiddenSize, width+2*groups, false, r.DType).Named("self_attn.qkv_proj"),
			gate:          t.NewLinear(c.HiddenSize, 2*c.IntermediateSize, false, r.DType).Named("mlp.gate_up_proj"),
			down:          t.NewLinear(c.IntermediateSize, c.HiddenSize, false, r.DType).Named("mlp.down_proj"),
			inputNorm:     t.NewRMSNorm(c.HiddenSize, r.DType),
			attentionNorm: t.NewRMSNorm(c.HiddenSize, r.DType),
			sliding:       c.Sliding(i),
		})
	}
	m.finish(t)
	return m.llama
}

// phi3Layer is Phi3DecoderLayer.forward.
func (m *phi3) phi3Layer(t *torch.Torch, i int, x, mask, cos, sin *torch.Var, cache *dynamicCache) torch.Value {
	f, l := t.Enter().In("layers", i), &m.layers[i]
	hidden := f.Let(x)
	residual := f.Let(hidden)
	hidden.Set(m.normed(t, hidden, l.inputNorm))
	attended, weights := m.attention(t, i, hidden, mask, cos, sin, cache)
	hidden.Set(attended)
	f.Let(weights)
	hidden.Set(t.Add(residual, t.Dropout(hidden, m.dropout, m.run.Train)))
	residual.Set(hidden)
	hidden.Set(m.normed(t, hidden, l.attentionNorm))
	hidden.Set(t.In("mlp", func() torch.Value { return m.feed(t, i, hidden) }))
	hidden.Set(t.Add(residual, t.Dropout(hidden, m.dropout, m.run.Train)))
	return f.Return(hidden)
}

// phi3Project takes queries, keys and values out of one product.
func (m *phi3) phi3Project(t *torch.Torch, f *torch.Frame, i int, hidden *torch.Var) (q, k, v *torch.Var) {
	b, s, size := hidden.Tensor().Dim(0), hidden.Tensor().Dim(1), m.cfg.HeadSize()
	joined := f.Let(t.Linear(hidden, m.layers[i].query))
	queries, groups := m.cfg.Heads*size, m.cfg.Groups()*size
	q = f.Let(t.Slice(joined, -1, 0, queries))
	k = f.Let(t.Slice(joined, -1, queries, queries+groups))
	v = f.Let(t.Slice(joined, -1, queries+groups, queries+2*groups))
	for _, x := range []*torch.Var{q, k, v} {
		x.Set(t.Transpose(t.View(x, b, s, -1, size), 1, 2))
	}
	return q, k, v
}

// phi3MLP is Phi3MLP.forward.
func (m *phi3) phi3MLP(t *torch.Torch, i int, x *torch.Var) torch.Value {
	f, l := t.Enter(), &m.layers[i]
	up := f.Let(t.Linear(x, l.gate))
	parts := t.Split(up, m.cfg.IntermediateSize, -1)
	gate := f.Let(parts[0])
	up.Set(parts[1])
	up.Set(t.Mul(up, t.SiLU(gate)))
	return f.Return(t.Linear(up, l.down))
}

// rotatePart is apply_rotary_pos_emb of models that may rotate the first part of
// a head alone: the parts are joined, also where the rest is empty.
func rotatePart(t *torch.Torch, q, k, cosines, sines *torch.Var) {
	f := t.Enter()
	cos, sin := f.Let(t.Unsqueeze(cosines, 1)), f.Let(t.Unsqueeze(sines, 1))
	n := cos.Tensor().Dim(-1)
	part := func(x *torch.Var) (turning, rest *torch.Var) {
		return f.Let(t.Slice(x, -1, 0, n)), f.Let(t.Slice(x, -1, n, x.Tensor().Dim(-1)))
	}
	turningQ, restQ := part(q)
	turningK, restK := part(k)
	rotate := func(x, rest *torch.Var) torch.Value {
		return f.Keep(f.Let(t.Cat(-1, t.Add(t.Mul(x, cos), t.Mul(rotateHalf(t, x), sin)), rest)))
	}
	newQ, newK := rotate(turningQ, restQ), rotate(turningK, restK)
	f.End()
	q.Set(newQ)
	k.Set(newK)
}
