package models

import (
	"errors"

	"memorymark/internal/hfconfig"
	"memorymark/internal/invalid"
	"memorymark/internal/torch"
)

var (
	gemmaFamily  = Family{Type: "gemma", Versions: []Versions{last4, older4}, read: reads(readGemma), Heads: decoderHeads("Gemma", newGemma, withoutSpans...)}
	gemma2Family = Family{
		Type: gemma2, Versions: []Versions{last4, older4}, read: reads(readGemma), Heads: decoderHeads("Gemma2", newGemma, withoutSpans...),
		Except: map[Versions][]string{older4: {Evaluation}}, // whose cache is a HybridCache
	}
	gemma3Family = Family{
		Type: gemma3, Versions: []Versions{last4, older4}, read: reads(readGemma),
		Heads:  append(decoderHeads("Gemma3", newGemma, causalHead), decoderHeads("Gemma3Text", newGemma, classesHead, noHead)...),
		Except: map[Versions][]string{older4: {Evaluation, "Gemma3TextForSequenceClassification"}}, // which it does not have
	}
)

// gemmaConfig is transformers' GemmaConfig, Gemma2Config or Gemma3TextConfig.
type gemmaConfig struct {
	llamaConfig
	HiddenActivation *string                    `json:"hidden_activation"`
	CapScores        *float64                   `json:"attn_logit_softcapping"`
	CapLogits        *float64                   `json:"final_logit_softcapping"`
	Bidirectional    bool                       `json:"use_bidirectional_attention"`
	Pattern          int64                      `json:"sliding_window_pattern"`
	Ropes            map[string]*RopeParameters `json:"rope_parameters"` // of Gemma 3, by kind of layer
}

// readGemma reads a configuration of Gemma 1, 2 or 3.
func readGemma(c *hfconfig.Config) (*gemmaConfig, error) {
	g := &gemmaConfig{llamaConfig: llamaConfig{
		VocabSize: 256000, HiddenSize: 2304, IntermediateSize: 9216, Layers: 26, Heads: 8, MaxPositions: 8192,
		HiddenAct: "gelu_pytorch_tanh", UseCache: true, NumLabels: 2, TieWordEmbeddings: true,
	}, Pattern: 2}
	size, groups, window, capped, logits := int64(256), int64(4), int64(4096), 50.0, 30.0
	g.HeadDim, g.KeyValueHeads = &size, &groups
	switch c.ModelType {
	case gemma2:
		g.SlidingWindow, g.CapScores, g.CapLogits = &window, &capped, &logits
	case gemma3:
		g.VocabSize, g.MaxPositions, g.SlidingWindow, g.Pattern = 262208, 131072, &window, 6
	default:
		g.HiddenSize, g.IntermediateSize, g.Layers, g.Heads, groups = 3072, 24576, 28, 16, 16
	}
	if err := g.decode(c, g, "gelu", "gelu_pytorch_tanh"); err != nil {
		return nil, err
	}
	return g, g.settle()
}

// settle is __post_init__: which layers attend through a window.
func (g *gemmaConfig) settle() error {
	switch {
	case g.HiddenActivation != nil && *g.HiddenActivation != "gelu" && *g.HiddenActivation != "gelu_pytorch_tanh":
		return invalid.At("hidden_activation", errors.New("config: hidden_activation of a Gemma must be gelu_pytorch_tanh or gelu"))
	case g.Bidirectional:
		return invalid.At("use_bidirectional_attention", errors.New("config: use_bidirectional_attention is not modelled"))
	case g.IsGemma() && g.SlidingWindow == nil:
		return invalid.At("sliding_window", errors.New("config: a Gemma 2 or 3 needs a sliding_window"))
	case !g.IsGemma():
		g.SlidingWindow = nil
	}
	if g.LayerTypes == nil && g.IsGemma() {
		for i := range g.Layers {
			kind := slidingAttention
			if (i+1)%g.Pattern == 0 {
				kind = fullAttention
			}
			g.LayerTypes = append(g.LayerTypes, kind)
		}
	}
	return nil
}

// rope is the type of the rotary positions of layers of full attention, which
// alone are scaled.
func (g *gemmaConfig) rope() RopeType {
	if r := g.Ropes[fullAttention]; r != nil && r.Type != "" {
		return r.Type
	}
	return g.Rope()
}

// gemma is what GemmaModel, Gemma2Model and Gemma3TextModel have in addition to Llama's:
// embeddings that are scaled, norms of their own, and from Gemma 2 on norms
// behind attention and MLP too (transformers/models/gemma/modeling_gemma.py,
// gemma2, gemma3).
type gemma struct {
	*llama
	scale *torch.Tensor // embed_scale
}

// newGemma makes the model, parameters in the order of its constructors.
func newGemma(t *torch.Torch, g *gemmaConfig, r Run) *llama {
	c := &g.llamaConfig
	m := &gemma{llama: newLlamaModel(c, r)}
	m.normed, m.angles = gemmaNorm, gemmaAngles(c.family, r.Versions)
	m.capsScores, m.capsLogits = g.CapScores != nil && c.family == gemma2, g.CapLogits != nil && c.IsGemma()
	m.embed = t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("embed_tokens")
	if m.scalesLate = c.family != gemma3 && r.Versions.Transformers.Before(5, 0); !m.scalesLate {
		m.embedded, m.scale = m.scaled, t.Buffer(r.DType)
	}
	norm := func(size int64) *torch.RMSNorm { return t.NewRMSNorm(size, r.DType) }
	for i := range c.Layers {
		var l llamaLayer
		l.projections(t, c, r)
		l.sliding = c.Sliding(i)
		if c.family == gemma3 {
			l.queryNorm, l.keyNorm = norm(c.HeadSize()), norm(c.HeadSize())
		}
		l.addGated(t, c, r)
		l.inputNorm, l.attentionNorm = norm(c.HiddenSize), norm(c.HiddenSize)
		if c.IsGemma() {
			l.feedNorm, l.feedOutputNorm = norm(c.HiddenSize), norm(c.HiddenSize)
		}
		m.layers = append(m.layers, l)
	}
	if c.IsGemma() {
		m.layer = m.gemmaLayer
	}
	if c.family != gemma3 {
		m.finish(t)
		return m.llama
	}
	m.project = m.gemma3Project
	m.finishGemma3(t, g)
	return m.llama
}

// finishGemma3 makes what comes after the layers: rotary positions for each kind
// of attention.
func (m *gemma) finishGemma3(t *torch.Torch, g *gemmaConfig) {
	m.norm = t.NewRMSNorm(m.cfg.HiddenSize, m.run.DType)
	if m.run.Versions.Transformers.Before(5, 0) {
		m.rotaries4(t, g)
		return
	}
	sliding := m.cfg.countSliding()
	if sliding < m.cfg.Layers {
		m.rotaries = append(m.rotaries, newRotary(t, g.rope(), m.cfg.HeadSize()))
	}
	if sliding > 0 {
		for i := range m.layers {
			if m.layers[i].sliding {
				m.layers[i].rotary = len(m.rotaries)
			}
		}
		m.rotaries = append(m.rotaries, newRotary(t, DefaultRope, m.cfg.HeadSize()))
	}
	initRotaries(t, m.rotaries)
}

// scaled is GemmaTextScaledWordEmbedding.forward.
func (m *gemma) scaled(t *torch.Torch, batch *Batch) torch.Value {
	return t.ScaledEmbedding(torch.Borrow(batch.IDs), m.embed, torch.Borrow(m.scale))
}

// gemmaNorm is GemmaRMSNorm.
func gemmaNorm(t *torch.Torch, x *torch.Var, m *torch.RMSNorm) torch.Value {
	f := t.Enter()
	output := f.Let(gemmaNormed(t, t.To(x, torch.Float32)))
	output.Set(t.Mul(output, t.Shift(t.To(torch.Borrow(m.Weight), torch.Float32))))
	return f.Return(t.To(output, x.Tensor().DType))
}

// gemmaNormed is GemmaRMSNorm._norm.
func gemmaNormed(t *torch.Torch, input torch.Value) torch.Value {
	f := t.Enter()
	x := f.Let(input)
	return f.Return(t.Mul(x, t.Rsqrt(t.Shift(t.MeanLast(t.Pow(x))))))
}

// gemmaLayer is Gemma2DecoderLayer.forward.
func (m *gemma) gemmaLayer(t *torch.Torch, i int, x, mask, cos, sin *torch.Var, cache *dynamicCache) torch.Value {
	f, l := t.Enter().In("layers", i), &m.layers[i]
	hidden := f.Let(x)
	if l.sliding && m.run.Versions.convertsMasks() {
		mask = windowed(t, f, mask)
	}
	residual := f.Let(hidden)
	hidden.Set(m.normed(t, hidden, l.inputNorm))
	attended, weights := m.attention(t, i, hidden, mask, cos, sin, cache)
	hidden.Set(attended)
	f.Let(weights)
	hidden.Set(m.normed(t, hidden, l.attentionNorm))
	hidden.Set(t.Add(residual, hidden))
	residual.Set(hidden)
	hidden.Set(m.normed(t, hidden, l.feedNorm))
	hidden.Set(t.In("mlp", func() torch.Value { return m.feed(t, i, hidden) }))
	hidden.Set(m.normed(t, hidden, l.feedOutputNorm))
	hidden.Set(t.Add(residual, hidden))
	return f.Return(hidden)
}

// gemma3Project makes queries, keys and values of Gemma3Attention, which norms
// heads that are transposed already.
func (m *gemma) gemma3Project(t *torch.Torch, f *torch.Frame, i int, hidden *torch.Var) (q, k, v *torch.Var) {
	l, b, s := &m.layers[i], hidden.Tensor().Dim(0), hidden.Tensor().Dim(1)
	split := func(p *torch.Linear) *torch.Var {
		return f.Let(t.Transpose(t.View(t.Linear(hidden, p), b, s, -1, m.cfg.HeadSize()), 1, 2))
	}
	q, k, v = split(l.query), split(l.key), split(l.value)
	q.Set(m.normed(t, q, l.queryNorm))
	k.Set(m.normed(t, k, l.keyNorm))
	return q, k, v
}
