package models

import (
	"slices"

	"memorymark/internal/hfconfig"
	"memorymark/internal/torch"
)

var qwen3MoEFamily = Family{Type: qwen3MoE, Experts: true, read: reads(readQwen3MoE), Heads: decoderHeads("Qwen3Moe", newQwen3MoE, allHeads...)}

// qwen3MoEConfig is transformers' Qwen3MoeConfig.
type qwen3MoEConfig struct {
	llamaConfig
	Experts      int64 `json:"num_experts"`
	Chosen       int64 `json:"num_experts_per_tok"`
	Inner        int64 `json:"moe_intermediate_size"`
	Step         int64 `json:"decoder_sparse_step"` // every how many layers have experts
	Dense        []int `json:"mlp_only_layers"`
	Normed       bool  `json:"norm_topk_prob"` // weights of a token are made to sum to one
	RouterLogits bool  `json:"output_router_logits"`
}

// readQwen3MoE reads a configuration, and completes it as __post_init__ does.
func readQwen3MoE(c *hfconfig.Config) (*qwen3MoEConfig, error) {
	groups, window := int64(4), int64(4096)
	l := &qwen3MoEConfig{llamaConfig: llamaConfig{
		VocabSize: 151936, HiddenSize: 2048, IntermediateSize: 6144, Layers: 24, Heads: 32, KeyValueHeads: &groups, MaxPositions: 32768,
		HiddenAct: "silu", UseCache: true, NumLabels: 2, SlidingWindow: &window, MaxWindowLayers: 28,
	}, Experts: 128, Chosen: 8, Inner: 768, Step: 1}
	if err := l.decode(c, l, "silu"); err != nil {
		return nil, err
	}
	if err := checkRouterLogits(l.RouterLogits, c.Architecture); err != nil {
		return nil, err
	}
	if !l.UseSlidingWindow {
		l.SlidingWindow = nil
	}
	l.MLPBias, l.LayerTypes = false, nil // Qwen3MoeConfig has no such keys
	return l, checkExperts(l.HiddenSize, l.Inner, "moe_intermediate_size", l.Experts, l.Chosen, "num_experts_per_tok")
}

// sparse reports whether a layer has experts.
func (c *qwen3MoEConfig) sparse(layer int64) bool {
	return !slices.Contains(c.Dense, int(layer)) && (layer+1)%c.Step == 0
}

func (c *qwen3MoEConfig) kindOf(layer int64) any {
	return [2]bool{c.Sliding(layer), c.sparse(layer)}
}

// anySparse reports whether there is a layer with experts.
func (c *qwen3MoEConfig) anySparse() bool {
	for i := range c.Layers {
		if c.sparse(i) {
			return true
		}
	}
	return false
}

// qwen3MoEModel is Qwen3MoeModel: Qwen3 with blocks of experts instead of the MLPs
// of some layers (transformers/models/qwen3_moe/modeling_qwen3_moe.py).
type qwen3MoEModel struct {
	*llama
	cfg    *qwen3MoEConfig
	blocks []qwen3MoEBlock
}

// qwen3MoEBlock is Qwen3MoeSparseMoeBlock, empty in a layer with an MLP.
type qwen3MoEBlock struct {
	experts *experts
	gate    *torch.Stack
}

// newQwen3MoE makes the model, parameters in the order of its constructors.
func newQwen3MoE(t *torch.Torch, c *qwen3MoEConfig, r Run) *llama {
	m := qwen3MoEModel{llama: newLlamaModel(&c.llamaConfig, r), cfg: c, blocks: make([]qwen3MoEBlock, c.Layers)}
	m.embed = t.NewEmbedding(c.VocabSize, c.HiddenSize, r.DType).AsInput("embed_tokens")
	for i := range c.Layers {
		var l llamaLayer
		l.projections(t, &c.llamaConfig, r)
		l.queryNorm, l.keyNorm = t.NewRMSNorm(c.HeadSize(), r.DType), t.NewRMSNorm(c.HeadSize(), r.DType)
		l.sliding = c.Sliding(i)
		if c.sparse(i) {
			m.blocks[i].experts = newExperts(t, c.Experts, c.HiddenSize, c.Inner, &c.llamaConfig, r)
			m.blocks[i].gate = newGate(t, c.Experts, c.HiddenSize, r)
		} else {
			l.gated(t, &c.llamaConfig, r)
		}
		l.inputNorm, l.attentionNorm = t.NewRMSNorm(c.HiddenSize, r.DType), t.NewRMSNorm(c.HiddenSize, r.DType)
		m.layers = append(m.layers, l)
	}
	m.feed, m.angles, m.balance = m.mlp, last, newBalancer(c.RouterLogits && c.anySparse(), c.Experts, c.Chosen)
	m.finish(t)
	return m.llama
}

// mlp is Qwen3MoeSparseMoeBlock.forward, or Qwen3MoeMLP's.
func (m qwen3MoEModel) mlp(t *torch.Torch, i int, x *torch.Var) torch.Value {
	block := m.blocks[i]
	if block.experts == nil {
		return m.llamaMLP(t, i, x)
	}
	f := t.Enter()
	b, s := x.Tensor().Dim(0), x.Tensor().Dim(1)
	hidden := f.Let(t.View(x, -1, m.cfg.HiddenSize))
	r := m.route(t, block.gate, hidden)
	m.balance.collect(t, f.Let(r.logits))
	weights, index := f.Let(r.weights), f.Let(r.index)
	final := f.Let(block.experts.forward(t, hidden, index, weights))
	return f.Return(t.Reshape(final, b, s, m.cfg.HiddenSize))
}

// route is Qwen3MoeTopKRouter.forward.
func (m qwen3MoEModel) route(t *torch.Torch, stack *torch.Stack, x *torch.Var) routed {
	gate := t.Activate(stack)
	defer gate.Leave()
	f := t.Enter().In("gate")
	hidden := f.Let(t.Reshape(x, -1, m.cfg.HiddenSize))
	logits := f.Let(t.LinearOf(hidden, gate.Weight()))
	probabilities := f.Let(t.Softmax(logits, torch.Float32))
	top, places := t.TopK(probabilities, m.cfg.Chosen)
	weights, index := f.Let(top), f.Let(places)
	if m.cfg.Normed {
		t.DivInPlace(weights, t.SumLast(weights))
	}
	weights.Set(t.To(weights, logits.Tensor().DType))
	out := routed{f.Keep(logits), f.Keep(weights), f.Keep(index)}
	f.End()
	return out
}
