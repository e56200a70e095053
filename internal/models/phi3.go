package models

import (
	"cmp"
	"fmt"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var phi3Family = Family{Type: phi3Type, Versions: []Versions{newest, last4, older4}, read: reads(readPhi3), Heads: decoderHeads("Phi3", newPhi3, withoutSpans...)}

// phi3Config is transformers' Phi3Config, of Phi-3 and Phi-4.
type phi3Config struct {
	llamaConfig
	ResidualDropout   float64  `json:"resid_pdrop"`
	RotaryFactor      *float64 `json:"partial_rotary_factor"`
	OriginalPositions int64    `json:"original_max_position_embeddings"`
}

// readPhi3 reads a configuration of Phi-3 or Phi-4.
func readPhi3(c *hfconfig.Config) (*phi3Config, error) {
	p := &phi3Config{llamaConfig: llamaConfig{
		VocabSize: 32064, HiddenSize: 3072, IntermediateSize: 8192, Layers: 32, Heads: 32, MaxPositions: 4096,
		HiddenAct: "silu", UseCache: true, NumLabels: 2,
	}, OriginalPositions: 4096}
	if err := p.decode(c, p, "silu"); err != nil {
		return nil, err
	}
	for _, r := range []*RopeParameters{p.RopeParameters, p.RopeScaling} {
		if r != nil {
			p.RotaryFactor = cmp.Or(r.RotaryFactor, p.RotaryFactor)
			p.OriginalPositions = *cmp.Or(r.OriginalPositions, &p.OriginalPositions)
		}
	}
	if rope := p.Rope(); rope != DefaultRope && rope != LongRope {
		return nil, invalid.At("rope_scaling", fmt.Errorf("config: rope_type of a phi3 is %q; it must be one of default, longrope", rope))
	}
	if f := p.RotaryFactor; f != nil && (*f <= 0 || *f > 1) {
		return nil, invalid.At("partial_rotary_factor", fmt.Errorf("config: partial_rotary_factor is %v; it must be above 0 and at most 1", *f))
	}
	return p, rotates(p.rotarySize())
}

// Rope is the type of the rotary positions: "su" and "yarn" are old names
// (transformers/models/phi3/configuration_phi3.py, convert_rope_params_to_dict).
func (c *phi3Config) Rope() RopeType {
	switch rope := c.llamaConfig.Rope(); rope {
	case "su", YarnRope:
		return LongRope
	default:
		return rope
	}
}

// rotarySize is how much of a head is rotated.
func (c *phi3Config) rotarySize() int64 {
	if c.RotaryFactor == nil {
		return c.HeadSize()
	}
	return int64(float64(c.HeadSize()) * *c.RotaryFactor)
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
	m.layer, m.project, m.feed, m.angles = m.phi3Layer, m.phi3Project, m.phi3MLP, last
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
	m.finishRotating(t, c.Rope(), c.rotarySize()).longFrom = c.OriginalPositions
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
		return f.Let(t.SliceTo(x, -1, n)), f.Let(t.Slice(x, -1, n, x.Tensor().Dim(-1)))
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
