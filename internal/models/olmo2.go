package models

import (
	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var olmo2Family = Family{
	Type: "olmo2", Versions: []Versions{newest, last4, older4},
	Except: map[Versions][]string{last4: {"Olmo2ForSequenceClassification"}, older4: {"Olmo2ForSequenceClassification"}}, // which they lack
	read:   reads(readOlmo2), Heads: decoderHeads("Olmo2", newOlmo2, causalHead, classesHead, noHead),
}

// readOlmo2 reads a configuration of OLMo 2, transformers' Olmo2Config.
func readOlmo2(c *hfconfig.Config) (*llamaConfig, error) {
	l := &llamaConfig{
		VocabSize: 50304, HiddenSize: 4096, IntermediateSize: 11008, Layers: 32, Heads: 32, MaxPositions: 2048,
		HiddenAct: "silu", UseCache: true, NumLabels: 2,
	}
	if err := l.decode(c, l, "silu"); err != nil {
		return nil, err
	}
	l.SlidingWindow, l.MLPBias = nil, false // Olmo2Config has no such keys
	return l, nil
}

// olmo2 is what Olmo2Model has in other ways than Llama: norms behind attention
// and MLP instead of before them, norms of all queries and of all keys, and
// rotary positions in float32 (transformers/models/olmo2/modeling_olmo2.py).
type olmo2 struct{ *llama }

// newOlmo2 makes the model, parameters in the order of its constructors.
func newOlmo2(t *torch.Torch, c *llamaConfig, r Run) *llama {
	m := olmo2{newLlamaModel(c, r)}
	m.layer, m.project = m.olmo2Layer, m.olmo2Project
	inFloat32 := !r.Versions.Transformers.Before(4, 57) // before, it norms and rotates as Llama does
	if inFloat32 {
		m.normed = olmo2Norm
		m.rotate = func(t *torch.Torch, _ int, q, k, cos, sin *torch.Var) { rotateWide(t, q, k, cos, sin) }
	}
	if r.Versions.Transformers.Before(5, 0) {
		m.angles = last
	}
	m.embed = t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("embed_tokens")
	for range c.Layers {
		var l llamaLayer
		l.projections(t, c, r)
		l.query.NormedWhole()
		l.key.NormedWhole()
		l.queryNorm = t.NewRMSNorm(c.Heads*c.HeadSize(), r.DType)
		l.keyNorm = t.NewRMSNorm(c.Groups()*c.HeadSize(), r.DType)
		l.addGated(t, c, r)
		l.attentionNorm = t.NewRMSNorm(c.HiddenSize, r.DType)
		l.feedOutputNorm = t.NewRMSNorm(c.HiddenSize, r.DType)
		m.layers = append(m.layers, l)
	}
	m.finish(t)
	m.rotaries[0].inFloat32 = inFloat32
	return m.llama
}

// olmo2Norm is Olmo2RMSNorm, which multiplies in float32.
func olmo2Norm(t *torch.Torch, x *torch.Var, m *torch.RMSNorm) torch.Value {
	f := t.Enter()
	hidden := f.Let(x)
	dtype := hidden.Tensor().DType
	hidden.Set(t.To(hidden, torch.Float32))
	variance := f.Let(t.MeanLast(t.Pow(hidden)))
	hidden.Set(t.Mul(hidden, t.Rsqrt(t.Shift(variance))))
	return f.Return(t.To(t.Mul(torch.Borrow(m.Weight), hidden), dtype))
}

// olmo2Layer is Olmo2DecoderLayer.forward.
func (m olmo2) olmo2Layer(t *torch.Torch, i int, x, mask, cos, sin *torch.Var, cache *dynamicCache) torch.Value {
	f, l := t.Enter().In("layers", i), &m.layers[i]
	hidden := f.Let(x)
	residual := f.Let(hidden)
	attended, weights := m.attention(t, i, hidden, mask, cos, sin, cache)
	hidden.Set(attended)
	f.Let(weights)
	hidden.Set(m.normed(t, hidden, l.attentionNorm))
	hidden.Set(t.Add(residual, hidden))
	residual.Set(hidden)
	hidden.Set(t.In("mlp", func() torch.Value { return m.feed(t, i, hidden) }))
	hidden.Set(m.normed(t, hidden, l.feedOutputNorm))
	hidden.Set(t.Add(residual, hidden))
	return f.Return(hidden)
}

// olmo2Project makes queries, keys and values of Olmo2Attention.
func (m olmo2) olmo2Project(t *torch.Torch, f *torch.Frame, i int, hidden *torch.Var) (q, k, v *torch.Var) {
	l, b, s := &m.layers[i], hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	q = f.Let(m.normTemporary(t, t.Linear(hidden, l.query), l.queryNorm))
	k = f.Let(m.normTemporary(t, t.Linear(hidden, l.key), l.keyNorm))
	v = f.Let(t.Linear(hidden, l.value))
	for _, x := range []*torch.Var{q, k, v} {
		x.Set(t.Transpose(t.View(x, b, s, -1, m.cfg.HeadSize()), 1, 2))
	}
	return q, k, v
}

// rotateWide is apply_rotary_pos_emb of Olmo2: with cosines and sines in float32
// the result is too, and is cast.
func rotateWide(t *torch.Torch, q, k, cosines, sines *torch.Var) {
	f := t.Enter()
	types := []torch.DType{q.Tensor().DType, k.Tensor().DType}
	cos, sin := f.Let(t.Unsqueeze(cosines, 1)), f.Let(t.Unsqueeze(sines, 1))
	rotate := func(x *torch.Var) *torch.Var {
		return f.Let(t.Add(t.Mul(x, cos), t.Mul(rotateHalf(t, x), sin)))
	}
	wideQ, wideK := rotate(q), rotate(k)
	newQ, newK := t.To(wideQ, types[0]), t.To(wideK, types[1])
	f.End()
	q.Set(newQ)
	k.Set(newK)
}
