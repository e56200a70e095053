package models

import (
	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var mixtralFamily = Family{Type: "mixtral", Experts: true, read: reads(readMixtral), Heads: decoderHeads("Mixtral", newMixtral, allHeads...)}

// mixtralConfig is transformers' MixtralConfig.
type mixtralConfig struct {
	llamaConfig
	Experts      int64   `json:"num_local_experts"`
	Chosen       int64   `json:"num_experts_per_tok"`
	Jitter       float64 `json:"router_jitter_noise"`
	RouterLogits bool    `json:"output_router_logits"`
}

// readMixtral reads a configuration.
func readMixtral(c *hfconfig.Config) (*mixtralConfig, error) {
	groups := int64(8)
	l := &mixtralConfig{llamaConfig: llamaConfig{
		VocabSize: 32000, HiddenSize: 4096, IntermediateSize: 14336, Layers: 32, Heads: 32, KeyValueHeads: &groups, MaxPositions: 4096 * 32,
		HiddenAct: "silu", UseCache: true, NumLabels: 2,
	}, Experts: 8, Chosen: 2}
	if err := l.decode(c, l, "silu"); err != nil {
		return nil, err
	}
	if err := checkRouterLogits(l.RouterLogits, c.Architecture); err != nil {
		return nil, err
	}
	l.AttentionBias, l.MLPBias, l.LayerTypes = false, false, nil // MixtralConfig has no such keys
	return l, checkExperts(l.HiddenSize, l.IntermediateSize, "intermediate_size", l.Experts, l.Chosen, "num_experts_per_tok")
}

// mixtral is MixtralModel: Mistral with experts instead of an MLP
// (transformers/models/mixtral/modeling_mixtral.py).
type mixtral struct {
	*llama
	cfg    *mixtralConfig
	blocks []mixtralBlock
}

// mixtralBlock is MixtralSparseMoeBlock.
type mixtralBlock struct {
	gate    *torch.Stack
	experts *experts
}

// newMixtral makes the model, parameters in the order of its constructors.
func newMixtral(t *torch.Torch, c *mixtralConfig, r Run) *llama {
	m := mixtral{llama: newLlamaModel(&c.llamaConfig, r), cfg: c}
	m.embed = t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("embed_tokens")
	for i := range c.Layers {
		var l llamaLayer
		l.projections(t, &c.llamaConfig, r)
		l.sliding = c.Sliding(i)
		m.blocks = append(m.blocks, mixtralBlock{
			gate:    newGate(t, c.Experts, c.HiddenSize, r),
			experts: newExperts(t, c.Experts, c.HiddenSize, c.IntermediateSize, &c.llamaConfig, r),
		})
		l.inputNorm, l.attentionNorm = t.NewRMSNorm(c.HiddenSize, r.DType), t.NewRMSNorm(c.HiddenSize, r.DType)
		m.layers = append(m.layers, l)
	}
	m.feed, m.angles, m.balance = m.sparse, last, newBalancer(c.RouterLogits, c.Experts, c.Chosen)
	m.finish(t)
	return m.llama
}

// sparse is MixtralSparseMoeBlock.forward.
func (m mixtral) sparse(t *torch.Torch, i int, x *torch.Var) torch.Value {
	f := t.Enter()
	b, s := x.Tensor().Dim(0), x.Tensor().Dim(1)
	hidden := f.Let(x)
	if m.run.Train && m.cfg.Jitter > 0 {
		t.MulInPlace(hidden, t.FullLike(hidden)) // uniform_
	}
	hidden.Set(t.View(hidden, -1, m.cfg.HiddenSize))
	r := m.route(t, m.blocks[i].gate, hidden)
	m.balance.collect(t, f.Let(r.logits))
	weights, index := f.Let(r.weights), f.Let(r.index)
	hidden.Set(m.blocks[i].experts.forward(t, hidden, index, weights))
	hidden.Set(t.Reshape(hidden, b, s, m.cfg.HiddenSize))
	return f.Return(hidden)
}

// route is MixtralTopKRouter.forward.
func (m mixtral) route(t *torch.Torch, stack *torch.Stack, x *torch.Var) routed {
	gate := t.Activate(stack)
	defer gate.Leave()
	f := t.Enter().In("gate")
	hidden := f.Let(t.Reshape(x, -1, m.cfg.HiddenSize))
	logits := f.Let(t.LinearOf(hidden, gate.Weight()))
	probabilities := f.Let(t.Softmax(t.To(logits, torch.Float32), torch.NoDType))
	top, places := t.TopK(probabilities, m.cfg.Chosen)
	weights, index := f.Let(top), f.Let(places)
	t.DivInPlace(weights, t.SumLast(weights))
	out := routed{f.Keep(logits), f.Keep(weights), f.Keep(index)}
	f.End()
	return out
}
